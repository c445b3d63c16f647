"""A device that is slower than it could be: its clock, its heat, its power, its link. It is simulated."""

from .device_model import HALF, PRODUCTS, Model
from .planted import simulated


@simulated("device.slowing", "step.slower", names=(PRODUCTS[HALF], "aten::mm"), step_time="mean")
def device_gets_slower(machine, job):
    """The device gets warm, and its clock goes down."""
    model = Model(machine, job)
    slower = 1.0 if job.fixed else job.draw.uniform(1.4, 1.8)
    for step in model.steps():
        model.slower = 1.0 if step < job.count // 3 else slower
        model.train()


HIGHEST_MHZ = 1410


def sample_clock(machine, mhz, reasons, limit_w=400):
    """What NVML says of the clock; no more than 400 W may be set."""
    machine.sample(
        {
            "SM clock highest (MHz)": HIGHEST_MHZ,
            "power limit (mW)": limit_w * 1000,
            "power limit highest (mW)": 400_000,
            "SM clock (MHz)": mhz,
            "temperature (°C)": 70,
            "clock event reasons (bits)": reasons,
        }
    )


@simulated("device.throttled", names=("GPU 0",), step_time="mean")
def device_gets_hot(machine, job):
    """The device gets hot, and lowers its clock."""
    model = Model(machine, job)
    mhz = job.draw.randrange(850, 1050)
    for step in model.steps():
        is_hot = step >= job.count // 3 and not job.fixed
        model.slower = HIGHEST_MHZ / mhz if is_hot else 1.0
        model.train()
        sample_clock(machine, mhz if is_hot else HIGHEST_MHZ, 0x20 if is_hot else 0)


@simulated("device.throttled", names=("GPU 0",))
def low_power_limit(machine, job):
    """The power limit of the device was lowered."""
    model = Model(machine, job)
    mhz = HIGHEST_MHZ if job.fixed else job.draw.randrange(850, 1050)
    model.slower = HIGHEST_MHZ / mhz
    for _ in model.steps():
        model.train()
        sample_clock(machine, mhz, 0 if job.fixed else 0x04, 400 if job.fixed else 200)


@simulated("device.slow_link", names=("Memcpy HtoD (Pinned -> Device)", "aten::copy_"))
def few_lanes(machine, job):
    """The link of the device has a quarter of its lanes."""
    size = job.draw.choice([64, 96, 128]) << 20
    model = Model(machine, job, rows=1024)
    machine.link = 1.0 if job.fixed else 0.25
    link = {"PCIe generation": 4, "PCIe width (lanes)": int(16 * machine.link)}
    for _ in model.steps():
        with machine.op("aten::copy_"):
            machine.copy(size, to_device=True, is_pinned=True)
        model.train()
        machine.sample({"PCIe generation highest": 4, "PCIe width highest (lanes)": 16, **link})


@simulated()
def device_at_its_limit(machine, job):
    """Large products draw all the power that the device may have at most."""
    model = Model(machine, job)
    for _ in model.steps():
        model.train()
        sample_clock(machine, 1200, 0x04)
