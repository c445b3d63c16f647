"""Faults of a job on a device, which is simulated: its steps are known to the nanosecond, and so is what the repair
saves."""

from .device_model import (
    BYTES_PER_NS,
    DOUBLE,
    ELEMENTWISE,
    FLOAT,
    HALF,
    OPERATIONS_PER_NS,
    OPTIMIZER,
    PRODUCTS,
    TF32,
    Model,
)
from .machine import COMMUNICATION_STREAM, STREAM
from .planted import simulated


@simulated("host.sync", names=("aten::item", "cudaStreamSynchronize", "Layer"))
def item_in_each_layer(machine, job):
    """Each layer reads a value from the device to look for overflow."""
    model = Model(machine, job, rows=job.draw.choice([256, 384, 512]))

    def check():
        with machine.op("aten::isfinite"):
            machine.kernel(ELEMENTWISE.format("isfinite", HALF), 3_000)
        if not job.fixed:
            with machine.op("aten::item"), machine.op("aten::_local_scalar_dense"):
                machine.copy(1, to_device=False, is_pinned=True)
                machine.wait()

    for _ in model.steps():
        model.train(check)


@simulated("copy.pageable", names=("Memcpy HtoD (Pageable -> Device)", "aten::copy_"))
def pageable_batches(machine, job):
    """Batches are copied from memory that is not pinned."""
    size = job.draw.choice([64, 96, 128]) << 20
    model = Model(machine, job, rows=1024)
    for _ in model.steps():
        with machine.op("aten::copy_"):
            machine.copy(size, to_device=True, is_pinned=job.fixed)
        model.train()


@simulated("memory.device_allocations", names=("cudaMalloc", "cudaFree"))
def allocations_in_steps(machine, job):
    """Each step gives its memory back to the driver, and asks for it again."""
    ns = job.draw.randrange(400_000, 800_000)
    model = Model(machine, job, rows=1024)

    def allocate():
        if not job.fixed:
            with machine.op("aten::empty"):
                machine.call("cudaMalloc", ns)

    for _ in model.steps():
        model.train(allocate)
        if not job.fixed:
            machine.wait("cudaDeviceSynchronize")
            for _ in range(model.layers):
                machine.call("cudaFree", ns // 2)


@simulated("launch.short_kernels", "host.tiny_operators", names=("aten::add", "cudaLaunchKernel"))
def short_kernels(machine, job):
    """A model of operators on few elements each."""
    operators = job.draw.randrange(30, 50)
    model = Model(machine, job, rows=512)

    def many():
        count = operators // 10 if job.fixed else operators
        for _ in range(count):
            with machine.op("aten::add", [[512], [512]], HALF, host_ns=6_000):
                machine.kernel(ELEMENTWISE.format("CUDAFunctor_add", HALF), 2_000 * (operators // count), 4)

    for _ in model.steps():
        model.train(many)


@simulated("compute.tensor_cores", names=(PRODUCTS[FLOAT], "aten::mm"))
def float32_products(machine, job):
    """Products of 32-bit floats run without tensor cores."""
    for_products = Model(machine, job, types=HALF if job.fixed else FLOAT)
    for _ in for_products.steps():
        for_products.train()


@simulated("compute.double_precision", names=(PRODUCTS[DOUBLE], "aten::mm"))
def float64_products(machine, job):
    """The model was made of 64-bit floats."""
    model = Model(machine, job, types=TF32 if job.fixed else DOUBLE)
    for _ in model.steps():
        model.train()


@simulated("optimizer.zero_grad", names=("Optimizer.zero_grad",))
def zeroed_gradients(machine, job):
    """Gradients are filled with zeros, and not let go."""
    model = Model(machine, job, rows=job.draw.choice([256, 384]), width=2048)
    for _ in model.steps():
        with machine.label("Optimizer.zero_grad#AdamW.zero_grad"):
            for _ in range(0 if job.fixed else 2 * model.layers):
                # Of 16-bit floats, and read again where the backward pass adds to them.
                model.pointwise("aten::zero_", 4 * model.width**2, "FillFunctor", 1)
        model.train()


@simulated("attention.unfused", names=("aten::softmax", "aten::matmul"))
def attention_by_parts(machine, job):
    """Attention writes its scores to memory, instead of one kernel that keeps them."""
    model = Model(machine, job, width=512)
    length, scores = job.draw.choice([1024, 2048]), 32

    def attend():
        if job.fixed:
            with machine.op("aten::scaled_dot_product_attention"):
                machine.kernel("flash_fwd_kernel", 4 * scores * length * length * 64 / OPERATIONS_PER_NS[HALF])
            return
        model.product("aten::matmul", scores * length, 64, length)
        model.pointwise("aten::mul", scores * length * length, "MulFunctor")
        model.pointwise("aten::masked_fill_", scores * length * length, "masked_fill_kernel")
        model.pointwise("aten::softmax", scores * length * length, "softmax_warp_forward")
        model.product("aten::matmul", scores * length, length, 64)

    for _ in model.steps():
        model.train(attend)


@simulated("optimizer.for_loop", names=("Optimizer.step#AdamW.step",))
def optimizer_by_parameter(machine, job):
    """Adam updates each of many parameters by itself."""
    model = Model(machine, job, rows=1024)
    parameters = job.draw.randrange(60, 100)

    def optimize():
        with machine.op("Optimizer.step#AdamW.step", host_ns=20_000):
            if job.fixed:
                with machine.op("aten::_fused_adamw_"):
                    machine.kernel(OPTIMIZER, parameters * 2_500)
                return
            for _ in range(parameters):
                for name in ("aten::mul_", "aten::lerp_", "aten::addcmul_", "aten::addcdiv_"):
                    with machine.op(name, [[4096]], FLOAT, host_ns=6_000):
                        machine.kernel(ELEMENTWISE.format(name, FLOAT), 2_500, 16)

    for _ in model.steps():
        model.forward()
        model.backward()
        optimize()


@simulated("compute.gemm_shapes", names=("aten::mm",))
def odd_sizes(machine, job):
    """The sizes of the layers are odd, and the library's slow kernels have to serve."""
    width = job.draw.choice([1021, 1279, 1531])
    model = Model(machine, job, width=width + (-width % 8 if job.fixed else 0))
    model.slower = 1.0 if job.fixed else job.draw.uniform(2.5, 3.5)
    for _ in model.steps():
        model.train()


@simulated("compute.few_blocks", names=(PRODUCTS[HALF], "aten::mm"))
def few_blocks(machine, job):
    """Batches are so small that a kernel has blocks for a part of the device only."""
    model = Model(machine, job)
    blocks = job.draw.randrange(20, 40)
    model.blocks, model.slower = (108, 1.0) if job.fixed else (blocks, 108 / blocks)
    for _ in model.steps():
        model.train()


@simulated("comm.overlap", "comm.exposed", anywhere=True)
def late_all_reduce(machine, job):
    """Gradients are averaged when the backward pass has ended, not beside it."""
    model = Model(machine, job)
    ns = job.draw.randrange(250_000, 400_000)

    for _ in model.steps():
        model.forward()
        model.backward(model.averaging(ns) if job.fixed else None)
        if not job.fixed:
            for _ in range(model.layers):
                model.averaging(ns)(machine.free[STREAM])
        machine.after(STREAM, machine.free[COMMUNICATION_STREAM])
        model.optimize()


@simulated("host.cpu_fallback", names=("aten::linalg_eig", "aten::_linalg_eig"))
def falls_back_to_cpu(machine, job):
    """An operator has no kernel for the device: its inputs are copied to the host, and its outputs back."""
    size, ns = job.draw.choice([1, 2, 4]) << 20, job.draw.randrange(400_000, 900_000)
    model = Model(machine, job, rows=1024)

    def eigenvalues():
        if job.fixed:
            with machine.op("aten::linalg_eig", [[64, 64]], FLOAT):
                machine.kernel("void geev_batched_kernel<float>(int, float*)", 50_000)
            return
        with machine.op("aten::to"), machine.op("aten::copy_"):
            machine.copy(size, to_device=False, is_pinned=False)
        with machine.op("aten::linalg_eig", [[64, 64]], FLOAT, host_ns=ns):
            pass
        with machine.op("aten::to"), machine.op("aten::copy_"):
            machine.copy(size, to_device=True, is_pinned=False)

    for _ in model.steps():
        model.train(eigenvalues)


@simulated("copy.repeated", names=("aten::to",))
def masks_from_the_host(machine, job):
    """Each layer makes a mask on the host, and copies it to the device."""
    size = job.draw.choice([64, 128, 256]) << 10
    model = Model(machine, job, rows=job.draw.choice([256, 384, 512]))

    def mask():
        if job.fixed:
            with machine.op("aten::ones", [[size]], "float"):
                machine.kernel(ELEMENTWISE.format("FillFunctor", FLOAT), size / BYTES_PER_NS, 64)
            return
        with machine.op("aten::ones", [[size]], "float", host_ns=30_000):
            pass
        with machine.op("aten::to"), machine.op("aten::_to_copy"), machine.op("aten::copy_"):
            machine.copy(size, to_device=True, is_pinned=False)

    for _ in model.steps():
        model.train(mask)


@simulated("comm.slows_kernels", names=(PRODUCTS[HALF],))
def communication_beside_products(machine, job):
    """Communication takes half of the multiprocessors from the products beside it."""
    slower = job.draw.uniform(1.5, 1.8)

    class Contended(Model):
        def product(self, *arguments):
            is_beside = machine.free[COMMUNICATION_STREAM] > max(machine.free[STREAM], machine.now)
            self.slower = slower if is_beside and not job.fixed else 1.0
            return super().product(*arguments)

    model = Contended(machine, job, rows=8192)
    # As long as the backward pass of a layer takes.
    ns = 4 * 2 * model.rows * 4 * model.width**2 / OPERATIONS_PER_NS[HALF]
    for _ in model.steps():
        model.forward()
        model.backward(model.averaging(ns))
        machine.after(STREAM, machine.free[COMMUNICATION_STREAM])
        model.optimize()


def sharded_steps(machine, job, is_prefetched):
    """A model whose layers' parameters are gathered, before they are needed or when they are."""
    model = Model(machine, job)
    ns = job.draw.uniform(0.5, 0.9) * 2 * 2 * model.rows * 4 * model.width**2 / OPERATIONS_PER_NS[HALF]

    def gather(layer):
        name = f"layers.{layer}"
        with machine.label(f"FSDP::pre_forward ({name})"), machine.label(f"FSDP::all_gather ({name})"):
            with machine.op("c10d::_allgather_base_", [[model.width**2]], HALF):
                return machine.kernel("ncclDevKernel_AllGather_RING_LL", ns, 24, COMMUNICATION_STREAM)

    for _ in model.steps():
        machine.after(COMMUNICATION_STREAM, machine.free[STREAM])
        gathered = gather(0)
        for layer in range(model.layers):
            machine.after(STREAM, gathered)
            if is_prefetched and layer + 1 < model.layers:
                gathered = gather(layer + 1)
            model.forward_layer()
            if not is_prefetched and layer + 1 < model.layers:
                machine.after(COMMUNICATION_STREAM, machine.free[STREAM])
                gathered = gather(layer + 1)
        model.backward()
        model.optimize()


@simulated("comm.late_gathers", names=("ncclDevKernel_AllGather_RING_LL",))
def gathers_without_prefetch(machine, job):
    """The parameters of a layer are gathered when the layer before has been computed."""
    sharded_steps(machine, job, is_prefetched=job.fixed)


@simulated("host.code", anywhere=True)
def python_between_launches(machine, job):
    """Python that launches nothing runs in each layer, while the device is done."""
    ns = job.draw.randrange(300_000, 600_000)
    model = Model(machine, job, rows=512)
    for _ in model.steps():
        model.train(lambda: machine.python(0 if job.fixed else ns))


@simulated()
def busy_device(machine, job):
    """Large products: the device does what it can."""
    model = Model(machine, job)
    for _ in model.steps():
        model.train()


@simulated()
def hidden_all_reduce(machine, job):
    """Gradients are averaged beside the backward pass."""
    model = Model(machine, job)
    ns = job.draw.randrange(100_000, 150_000)

    for _ in model.steps():
        model.forward()
        model.backward(model.averaging(ns))
        machine.after(STREAM, machine.free[COMMUNICATION_STREAM])
        model.optimize()


@simulated()
def loss_read_once_a_step(machine, job):
    """The loss is read at the end of each step, when the device has much to do."""
    model = Model(machine, job)
    for _ in model.steps():
        with machine.op("aten::copy_"):
            machine.copy(1 << 20, to_device=True, is_pinned=True)
        model.train()
        with machine.op("aten::item"), machine.op("aten::_local_scalar_dense"):
            machine.copy(4, to_device=False, is_pinned=True)
            machine.wait()


@simulated()
def gathers_in_time(machine, job):
    """The parameters of a layer are gathered beside the layer before."""
    sharded_steps(machine, job, is_prefetched=True)


@simulated()
def micro_batches(machine, job):
    """A step has several passes, each with a batch of its own from pinned memory."""
    model = Model(machine, job, rows=2048)
    for _ in model.steps():
        for _ in range(4):
            for _ in range(2):
                with machine.op("aten::to"), machine.op("aten::_to_copy"), machine.op("aten::copy_"):
                    machine.copy(32 << 10, to_device=True, is_pinned=True)
            model.forward()
            model.backward()
        model.optimize()
