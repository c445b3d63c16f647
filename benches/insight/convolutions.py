"""Faults of convolutions on a simulated device."""

from .device_model import BYTES_PER_NS, HALF, SIZES, Model
from .planted import simulated

CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize{}"


@simulated("compute.layouts", names=("aten::cudnn_convolution",))
def channels_first(machine, job):
    """Convolutions get their images with channels first, and their kernels want them last."""
    model = Model(machine, job)
    elements, change = (
        model.rows * model.width,
        "void cudnn::ops::{}Kernel<__half, __half, float>(float const*, float*)",
    )

    def relay(kernel):
        if not job.fixed:
            machine.kernel(change.format(kernel), 4 * elements * SIZES[HALF] * 2 / BYTES_PER_NS, model.blocks)

    def convolve():
        with machine.op("aten::cudnn_convolution", host_ns=8_000):
            relay("nchwToNhwc")
            ns = 16 * elements * SIZES[HALF] / BYTES_PER_NS
            machine.kernel(CONVOLUTION.format("128x128x32"), ns, model.blocks)
            relay("nhwcToNchw")

    for _ in model.steps():
        model.train(convolve)


@simulated("compute.autotune", names=("aten::cudnn_convolution",))
def tries_in_steps(machine, job):
    """Each batch has another size, of which each convolution tries all algorithms."""
    model = Model(machine, job, rows=1024)
    tiles = ["128x128x32", "256x64x32", "64x64x32", "256x128x32", "128x64x64", "64x32x64"]

    def convolve():
        ns = 24 * model.rows * model.width * SIZES[HALF] / BYTES_PER_NS
        with machine.op("aten::cudnn_convolution", host_ns=8_000):
            for at, tile in enumerate([] if job.fixed else tiles * 3):
                machine.kernel(CONVOLUTION.format(tile), ns * (1 + at % 6 / 3), model.blocks)
                machine.wait("cudaEventSynchronize")
            machine.kernel(CONVOLUTION.format(tiles[0]), ns, model.blocks)

    for _ in model.steps():
        model.train(convolve)


def convolution(model, size, has_bias, behind=None):
    """A convolution, and `behind` it what its module is followed by; when it begins."""
    machine = model.machine
    with machine.op("aten::conv2d", host_ns=3_000) as begin, machine.op("aten::_convolution", host_ns=3_000):
        with machine.op("aten::cudnn_convolution"):
            machine.kernel(CONVOLUTION.format("128x128x32"), 4 * size * SIZES[HALF] / BYTES_PER_NS, model.blocks)
        if has_bias:
            model.pointwise("aten::add_", size, "CUDAFunctor_add")
    if behind:
        behind()
    return begin


def convolution_backward(model, size, has_bias, forward):
    machine = model.machine
    node = "autograd::engine::evaluate_function: ConvolutionBackward0"
    with machine.op(node, host_ns=3_000) as begin, machine.op("aten::convolution_backward"):
        machine.kernel(CONVOLUTION.format("256x64x32"), 8 * size * SIZES[HALF] / BYTES_PER_NS, model.blocks)
        if has_bias:
            with machine.op("aten::sum"):
                machine.kernel(
                    "void at::native::reduce_kernel<128, 4>", size * SIZES[HALF] / BYTES_PER_NS, model.blocks
                )
    machine.connect(forward, begin)


def train_convolutions(model, size, has_bias, behind=None):
    """Steps with a convolution in each layer."""
    for _ in model.steps():
        begins = []
        model.forward(lambda begins=begins: begins.append(convolution(model, size, has_bias, behind)))
        model.backward(lambda _, begins=begins: convolution_backward(model, size, has_bias, begins.pop()))
        model.optimize()


@simulated("compute.convolution_bias", names=("aten::add_",))
def needless_bias(machine, job):
    """Convolutions in front of batch normalizations have a bias."""
    model = Model(machine, job, rows=1024)
    size = model.rows * model.width * job.draw.choice([24, 32])

    def normalize():
        # The number of batches.
        model.pointwise("aten::add_", 1, "CUDAFunctor_add")
        with machine.op("aten::batch_norm", host_ns=3_000), machine.op("aten::cudnn_batch_norm"):
            ns = 3 * size * SIZES[HALF] / BYTES_PER_NS
            machine.kernel("void cudnn::bn_fw_tr_1C11_kernel_NCHW<__half, float, int, 512>", ns, model.blocks)

    train_convolutions(model, size, not job.fixed, normalize)


@simulated()
def bias_without_norm(machine, job):
    """Convolutions have a bias, and nothing takes it away."""
    model = Model(machine, job, rows=1024)
    train_convolutions(model, model.rows * model.width * 24, True)
