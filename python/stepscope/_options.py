"""What to record beside operators, labels and steps: said on the command line or to the API, read by every process."""

import dataclasses
import os
from typing import Optional

from stepscope._say import say

VARIABLE = "STEPSCOPE_OPTIONS"


@dataclasses.dataclass(frozen=True)
class Options:
    """What a run records. The defaults are all that is cheap."""

    shapes: bool = False
    """What each operator is called with: shapes, types, strides, values."""
    memory: bool = False
    """Every allocation and free."""
    stacks: str = ""
    """Python's call stack: ``"ops"``, of each operator; ``"calls"``, every Python call as well; else nothing."""
    modules: bool = True
    """Calls of ``nn.Module``, by their path in the model."""
    gc: bool = True
    """Python's garbage collections."""
    counters: bool = True
    """The process's memory and CPU time, sampled."""
    stack_samples: bool = False
    """Which line of Python each thread is in, sampled, and what it waits for. ``stepscope record`` asks for it."""
    io: bool = False
    """Calls on files, where ``stepscope record --io`` does not record them already. ``stepscope record`` asks for it."""
    gpu: str = "auto"
    """What devices do, once the program uses one: ``"auto"``, by their own profiler where that has shown that it may be
    used, else as ``"torch"``; ``"native"``, by their own profiler; ``"torch"``, by a session of ``torch.profiler``;
    ``"off"``."""
    nvtx: bool = False
    """Ranges that the program marks with NVTX."""
    ring: float = 0.0
    """Keep only this many seconds of the past; 0: everything."""
    slow_step: float = 0.0
    """With a ring: keep what is in it after a step that takes this many times the median; 0: never."""
    schedule: Optional[dict] = None
    """Record only some steps: the keywords of ``torch.profiler.schedule``; None: all of them."""

    @classmethod
    def from_environment(cls):
        """The options that ``stepscope record`` or a parent process set; those not set are the defaults."""
        text = os.environ.get(VARIABLE, "")
        fields = {field.name: field.default for field in dataclasses.fields(cls)}
        try:
            said = dict(part.split("=", 1) for part in text.split(",") if part)
            return cls(**{name: _read(value, fields[name]) for name, value in said.items() if name in fields})
        except ValueError:
            say(f"{VARIABLE} cannot be read and is left aside: {text[:80]!r}")
            return cls()

    def to_environment(self):
        """The value of :data:`VARIABLE` that says the same: ``NAME=VALUE,…``, as launchers pass it on unquoted."""
        return ",".join(f"{name}={_said(value)}" for name, value in dataclasses.asdict(self).items())


def _read(text, default):
    if default is None:
        return {name: int(number) for name, number in (part.split(":") for part in text.split("+"))} if text else None
    return bool(int(text)) if isinstance(default, bool) else type(default)(text)


def _said(value):
    if value is None:
        return ""
    if isinstance(value, dict):
        return "+".join(f"{name}:{number}" for name, number in value.items())
    return int(value) if isinstance(value, bool) else value
