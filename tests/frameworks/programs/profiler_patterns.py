"""Calls ``torch.profiler.profile`` as frameworks do, and prints what came of it as JSON: the same for PyTorch's and ours.

The patterns are those of vLLM, SGLang, torchtitan, Megatron-LM, Composer, Axolotl and LLaMA-Factory, and the real ones of
torchtune, Lightning and accelerate.
"""

import inspect
import json
from pathlib import Path

import torch
import torch.profiler
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

CPU = [ProfilerActivity.CPU]
FOLDER = Path("out")
FOLDER.mkdir()


def work(label="work"):
    with record_function(label):
        return torch.erfinv(torch.zeros(4))


def names_in(path):
    import gzip

    open_it = gzip.open if str(path).endswith(".gz") else open
    with open_it(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    return sum(event.get("name") == "aten::erfinv" for event in events)


def exported(folder, pattern="*"):
    """The traces below a folder, without what a clock and a process put into their names, and their operators."""
    files = sorted(path for path in folder.rglob(pattern) if path.is_file())
    return [("gz" if path.suffix == ".gz" else "plain", names_in(path)) for path in files]


def vllm():
    """One object that is started and stopped again and again."""
    folder = FOLDER / "vllm"
    handler = tensorboard_trace_handler(str(folder), worker_name="rank0", use_gzip=True)
    profiler = profile(activities=CPU, record_shapes=False, with_stack=True, on_trace_ready=handler)
    found = [profiler.profiler is None]
    for _ in range(2):
        profiler.start()
        work()
        profiler.stop()
        found.append("aten::erfinv" in profiler.key_averages().table(sort_by="self_cpu_time_total"))
    return found, exported(folder)


def sglang():
    """A new object each time, exported by hand."""
    for at in range(2):
        profiler = torch.profiler.profile(activities=CPU, with_stack=True, record_shapes=False)
        profiler.start()
        work()
        profiler.stop()
        (FOLDER / "sglang").mkdir(exist_ok=True)
        profiler.export_chrome_trace(str(FOLDER / "sglang" / f"{at}-TP-0-DECODE.trace.json.gz"))
    return exported(FOLDER / "sglang")


def torchtitan():
    """``step_num`` is set to the step at which the job goes on."""
    at = []
    options = {"schedule": schedule(wait=1, warmup=1, active=1, repeat=0), "record_shapes": True}
    with torch.profiler.profile(
        activities=CPU, on_trace_ready=lambda prof: at.append(prof.step_num), **options
    ) as profiler:
        profiler.step_num = 100
        for _ in range(10):
            work()
            profiler.step()
    return at


def torchtune():
    """Its handler reads members of the object, and writes a table of averages and stacks."""
    import torchtune.training

    folder = FOLDER / "torchtune"
    steps = {"wait_steps": 1, "warmup_steps": 1, "active_steps": 2, "num_cycles": 2}
    prof, _ = torchtune.training.setup_torch_profiler(
        enabled=True, cuda=False, xpu=False, with_stack=True, output_dir=str(folder), **steps
    )
    with prof:
        for _ in range(8):
            work()
            prof.step()
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.txt"))
    # Its 25 rows begin with functions that were called before all operators.
    tables = [": torchtune" in path.read_text() for path in folder.rglob("*averages.txt")]
    return names, tables, exported(folder, "*.json.gz")


def megatron():
    """``step()`` at the top of a turn, and an end by number."""
    at = []
    prof = torch.profiler.profile(
        activities=CPU,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda p: at.append(p.step_num),
    )
    prof.start()
    has_observer = prof.execution_trace_observer is None
    for iteration in range(5):
        prof.step()
        if iteration == 4:
            prof.stop()
        work()
    return at, has_observer


def composer():
    """The schedule ignores its argument; averages are asked for before the end."""
    state = {"batch": 0}

    def ask(_):
        return torch.profiler.ProfilerAction.RECORD if state["batch"] < 3 else torch.profiler.ProfilerAction.NONE

    prof = torch.profiler.profile(activities=CPU, schedule=ask, with_flops=True)
    prof.__enter__()
    actions = []
    for batch in range(2):
        state["batch"] = batch
        work()
        prof.step()
        actions.append(prof.current_action.name)
    prof.__exit__(None, None, None)
    return actions, len(prof.key_averages()) > 0, [str(activity) for activity in prof.activities]


def axolotl():
    """Without a schedule and without ``step()``."""
    prof = profile(activities=CPU, record_shapes=True, profile_memory=True, with_stack=True)
    prof.__enter__()
    work()
    prof.__exit__(None, None, None)
    (FOLDER / "axolotl").mkdir()
    prof.export_chrome_trace(str(FOLDER / "axolotl" / "profiler_trace.json"))
    return exported(FOLDER / "axolotl")


def llamafactory():
    prof = profile(
        activities=CPU,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(FOLDER / "llamafactory" / "rank_0")),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    )
    prof.start()
    for _ in range(6):
        work()
        prof.step()
    prof.stop()
    return exported(FOLDER / "llamafactory")


def accelerate():
    from accelerate import Accelerator, ProfileKwargs

    handler = ProfileKwargs(activities=["cpu"], record_shapes=True, output_trace_dir=str(FOLDER / "accelerate"))
    with Accelerator(cpu=True, kwargs_handlers=[handler]).profile() as prof:
        work()
    return any(average.key == "aten::erfinv" for average in prof.key_averages()), exported(FOLDER / "accelerate")


def lightning():
    import lightning.pytorch as pl
    from lightning.pytorch.profilers import PyTorchProfiler

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch, batch_idx):
            work()
            return self.layer(batch[0]).sum()

        def validation_step(self, batch, batch_idx):
            self.layer(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.001)

    def loader():
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(16, 8)), batch_size=2)

    profiler = PyTorchProfiler(dirpath=str(FOLDER / "lightning"), filename="x", export_to_chrome=True)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = pl.Trainer(accelerator="cpu", max_epochs=1, profiler=profiler, num_sanity_val_steps=0, **quiet)
    trainer.fit(Model(), loader(), loader())
    tables = sorted(path.name for path in (FOLDER / "lightning").glob("*.txt"))
    traces = sorted((FOLDER / "lightning").glob("*.json"))
    return tables, [names_in(path) for path in traces]


def waiting():
    """An object inside of another that waits."""
    found = []
    steps = schedule(wait=1, warmup=1, active=1, repeat=1)
    with profile(activities=CPU, schedule=steps, on_trace_ready=lambda prof: found.append(counted(prof))) as outer:
        for step in range(4):
            if step == 0:
                with profile(activities=CPU) as inner:
                    work()
                found.append(counted(inner))
            work()
            outer.step()
    return found


def nested():
    """An object inside of another that records."""
    with profile(activities=CPU) as outer:
        work()
        with profile(activities=CPU) as inner:
            work()
        work()
    return counted(outer), counted(inner)


def counted(prof):
    return sum(average.count for average in prof.key_averages() if average.key == "aten::erfinv")


def itself():
    """What PyTorch has from its own profiler, and what a program asks of the class."""
    prof = torch.profiler.profile(activities=CPU)
    own = {"torch": torch, "CPU": CPU, "__name__": "torch._inductor.utils"}
    theirs = type(eval("torch.profiler.profile(activities=CPU)", own)).__module__

    class Mine(torch.profiler.profile):
        pass

    with Mine(activities=CPU) as mine:
        work()
    return {
        "is_instance": isinstance(prof, torch.profiler.profile),
        "is_subclass": issubclass(Mine, torch.profiler.profile) and isinstance(mine, Mine),
        "is_other": isinstance(prof, Mine),
        "known": [
            name
            for name in ("activities", "schedule", "on_trace_ready")
            if name in inspect.signature(torch.profiler.profile).parameters
        ],
        "init": "activities" in inspect.signature(torch.profiler.profile.__init__).parameters,
        "autograd": torch.autograd.profiler.profile.__module__,
        "compiled": torch.compile(lambda x: x + 1, backend="eager")(torch.zeros(1)).item(),
        "theirs": theirs,
    }


PATTERNS = (
    vllm,
    sglang,
    torchtitan,
    torchtune,
    megatron,
    composer,
    axolotl,
    llamafactory,
    accelerate,
    lightning,
    waiting,
    nested,
    itself,
)
# In its first recording of stacks PyTorch 2.13 may name a frame by memory that is gone, and cannot read its own events:
# nobody reads this one.
with profile(activities=CPU, with_stack=True):
    pass
found = {pattern.__name__: pattern() for pattern in PATTERNS}
found["of"] = type(torch.profiler.profile(activities=CPU)).__module__
print(json.dumps(found))
