"""Faults of how the host launches what a simulated device does."""

from .device_model import BYTES_PER_NS, ELEMENTWISE, HALF, Model
from .planted import simulated


def short_layers(machine, job, counts, launch=None):
    """Steps of `counts` layers, of operators whose kernels are longer than their launch, and shorter than what the host does
    for them; or `launch` has them run."""
    ns = job.draw.randrange(6_000, 9_000)
    kernels = [(ELEMENTWISE.format(f"Functor_{part}", HALF), ns) for part in range(6)]
    # As many numbers as are read twice and written in that time.
    size = int(ns * BYTES_PER_NS / 6)

    def one_by_one(kernels):
        for name, ns in kernels:
            with machine.op("aten::mul", [[size], [size]], HALF):
                machine.kernel(name, ns, 108)

    for count in counts:
        with machine.step():
            (launch or one_by_one)(kernels * count)
            machine.wait("cudaDeviceSynchronize")


@simulated("launch.graph_possible", names=("GPU 0",))
def same_launches(machine, job):
    """Every step launches the same kernels, one by one, and the device waits for them."""
    counts = [job.draw.randrange(20, 40)] * job.count
    short_layers(machine, job, counts, machine.graph if job.fixed else None)


@simulated("host.launch_bound", names=("GPU 0",))
def launches_that_change(machine, job):
    """Every step launches other kernels, which no graph can hold; the repaired twin has one kernel for six of them."""
    counts = [job.draw.randrange(20, 40) for _ in range(job.count)]

    def fused(kernels):
        for name, ns in kernels[::6]:
            with machine.op("CompiledFunction"):
                machine.kernel(name, 6 * ns, 108)

    short_layers(machine, job, counts, fused if job.fixed else None)


@simulated()
def same_launches_of_a_busy_device(machine, job):
    """Every step launches the same kernels, and the host is ahead of the device."""
    model = Model(machine, job, rows=2048)
    for _ in model.steps():
        model.train()
