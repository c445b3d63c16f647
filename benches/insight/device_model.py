"""A model that trains on a simulated device."""

from .machine import COMMUNICATION_STREAM

HALF, FLOAT, DOUBLE = "c10::Half", "float", "double"
# 32-bit floats whose products are made in tensor cores.
TF32 = "float "
# Operations and bytes in a ns that kernels reach: three quarters of what the device could do.
OPERATIONS_PER_NS = {HALF: 0.75 * 312_000, FLOAT: 0.75 * 19_500, TF32: 0.75 * 156_000, DOUBLE: 0.75 * 19_500}
BYTES_PER_NS = 0.75 * 1_555
SIZES = {HALF: 2, FLOAT: 4, TF32: 4, DOUBLE: 8}
PRODUCTS = {
    HALF: "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
    FLOAT: "ampere_sgemm_128x64_tn",
    TF32: "ampere_s1688gemm_128x128_ldg4_stages_32x1_tn",
    DOUBLE: "cutlass_80_tensorop_d884gemm_64x64_16x4_tn_align1",
}
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}>(int, {})"
OPTIMIZER = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>"


class Model:
    """Layers of two products each, with an element-wise operator between them."""

    def __init__(self, machine, job, rows=4096, width=None, types=HALF):
        self.machine, self.job, self.rows, self.types = machine, job, rows, types
        self.width = width or job.draw.choice([1024, 1280, 1536])
        self.layers = job.draw.randrange(6, 10)
        # Of the products, how much longer than at three quarters of the device's rate.
        self.slower = 1.0
        self.blocks = 1728

    def product(self, name, rows, inner, columns):
        """A matrix product."""
        ns = self.slower * 2 * rows * inner * columns / OPERATIONS_PER_NS[self.types]
        with self.machine.op(name, [[rows, inner], [inner, columns]], self.types.strip()):
            return self.machine.kernel(PRODUCTS[self.types], ns, self.blocks)

    def pointwise(self, name, count, kernel="GeluCUDAKernelImpl", reads=2):
        """An element-wise operator."""
        with self.machine.op(name, [[count]] * (reads - 1), self.types.strip()):
            ns = count * SIZES[self.types] * reads / BYTES_PER_NS
            return self.machine.kernel(ELEMENTWISE.format(kernel, self.types.strip()), ns, self.blocks)

    def forward_layer(self, extra=None):
        rows, width = self.rows, self.width
        self.product("aten::mm", rows, width, 4 * width)
        self.pointwise("aten::gelu", rows * 4 * width)
        self.product("aten::mm", rows, 4 * width, width)
        if extra:
            extra()

    def forward(self, extra=None):
        with self.machine.module("Model"):
            for layer in range(self.layers):
                with self.machine.module(f"Layer{layer}"):
                    self.forward_layer(extra)

    def backward(self, after_layer=None):
        rows, width = self.rows, self.width
        for _ in range(self.layers):
            for inner in (width, 4 * width):
                with self.machine.op("autograd::engine::evaluate_function: MmBackward0", host_ns=4_000):
                    self.product("aten::mm", rows, inner, 5 * width - inner)
                    end = self.product("aten::mm", inner, rows, 5 * width - inner)
            with self.machine.op("autograd::engine::evaluate_function: GeluBackward0", host_ns=4_000):
                self.pointwise("aten::gelu_backward", rows * 4 * width, "GeluBackwardCUDAKernelImpl", 3)
            if after_layer:
                after_layer(end)

    def averaging(self, ns):
        """What averages the gradients of a layer over all ranks, when the work before it ends."""

        def average(after):
            self.machine.after(COMMUNICATION_STREAM, after)
            with self.machine.op("c10d::allreduce_", [[self.width**2 * 8]], HALF):
                self.machine.kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL", ns, 24, COMMUNICATION_STREAM)

        return average

    def optimize(self):
        """The fused optimizer."""
        with self.machine.op("Optimizer.step#AdamW.step", host_ns=20_000), self.machine.op("aten::_fused_adamw_"):
            self.machine.kernel(OPTIMIZER, self.layers * 8 * self.width**2 * 14 / BYTES_PER_NS)

    def train(self, extra=None):
        self.forward(extra)
        self.backward()
        self.optimize()

    def steps(self):
        """Each step ends when the loss is read, as it would be now and then."""
        for number in range(self.job.count):
            with self.machine.step():
                yield number
                self.machine.wait("cudaDeviceSynchronize")
