"""A profiler for torchtune's recipes, in the place of torchtune's own: ``_component_: stepscope.torchtune.setup_profiler``."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["setup_profiler"]

_DEFAULTS = {"wait_steps": 5, "warmup_steps": 5, "active_steps": 2, "num_cycles": 1}


def setup_profiler(
    enabled: bool = False,
    cpu: bool = True,
    cuda: bool = True,
    xpu: bool = True,
    profile_memory: bool = False,
    with_stack: bool = False,
    record_shapes: bool = True,
    with_flops: bool = False,
    wait_steps: int | None = None,
    warmup_steps: int | None = None,
    active_steps: int | None = None,
    num_cycles: int | None = None,
    output_dir: str | None = None,
):
    """What ``torchtune.training.setup_torch_profiler`` gives for the same keys: a profiler, and the configuration that
    recipes read, with torchtune's own defaults.

    The profiler is a :class:`stepscope.profiler.profile`. Its run is the folder ``stepscope`` in ``output_dir``; below
    ``stepscope record`` it is the run of that.
    """
    from omegaconf import DictConfig

    if not enabled:
        return _Nothing(), DictConfig({"enabled": False})
    import torch
    from torch.profiler import ProfilerActivity

    from stepscope.profiler import profile, schedule

    if not (cpu or cuda or xpu):
        cpu = cuda = xpu = True
    # It is on by default, and where there is none PyTorch says nothing of it.
    wanted = {"CPU": cpu, "CUDA": cuda, "XPU": xpu and (torch.xpu.is_available() or not (cpu or cuda))}
    given = {
        "wait_steps": wait_steps,
        "warmup_steps": warmup_steps,
        "active_steps": active_steps,
        "num_cycles": num_cycles,
    }
    steps = {name: _DEFAULTS[name] if number is None else number for name, number in given.items()}
    what = {
        "profile_memory": profile_memory,
        # PyTorch's timeline of memory is made of these.
        "with_stack": with_stack or profile_memory,
        "record_shapes": record_shapes or profile_memory,
        "with_flops": with_flops,
    }
    folder = Path(output_dir or "profiler_output")
    folder.mkdir(parents=True, exist_ok=True)
    prof = profile(
        activities=[getattr(ProfilerActivity, name) for name, is_on in wanted.items() if is_on],
        schedule=schedule(
            wait=steps["wait_steps"],
            warmup=steps["warmup_steps"],
            active=steps["active_steps"],
            repeat=steps["num_cycles"],
        ),
        run=str(folder / "stepscope"),
        **what,
    )
    devices = {"cpu": cpu, "cuda": cuda, "xpu": xpu}
    return prof, DictConfig({"enabled": enabled, "output_dir": str(folder), **devices, **what, **steps})


class _Nothing(contextlib.nullcontext):
    """What a recipe without a profiler calls."""

    def start(self):
        pass

    def stop(self):
        pass

    def step(self):
        pass
