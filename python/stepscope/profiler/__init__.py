"""Record a training loop from inside the program, with the names of ``torch.profiler``.

>>> from stepscope.profiler import profile, schedule, record_function
>>> with profile(schedule=schedule(wait=1, warmup=1, active=3, repeat=2), run="runs/a") as prof:
...     for batch in loader:
...         with record_function("forward"):
...             loss = model(batch)
...         prof.step()
>>> print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))

Read all that was recorded with ``stepscope report runs/a`` or ``stepscope.open("runs/a")``: threads and forked or spawned
workers of the program are recorded too. ``docs/torch-profiler.md`` lists what is the same as in ``torch.profiler`` and
what is not.
"""

import sys

from stepscope import _as_torch_profiler, _recording
from stepscope.profiler._exports import tensorboard_trace_handler
from stepscope.profiler._kineto_profile import _KinetoProfile as _KinetoProfile
from stepscope.profiler._labels import record_function
from stepscope.profiler._profile import profile
from stepscope.profiler._schedule import sampled, schedule

# What torch.profiler has under the same name is that very object, so that both can be used side by side.
_OF_TORCH = (
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "_ExperimentalConfig",
    "itt",
    "kineto_available",
    "supported_activities",
)

if "torch" in sys.modules:
    _recording.prove_early(sys.modules["torch"])
if _as_torch_profiler.is_wanted():
    import torch

    _as_torch_profiler.replace(torch)

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "sampled",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __getattr__(name):
    if name in _OF_TORCH:
        import torch.profiler

        return getattr(torch.profiler, name)
    if name in ("EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"):
        from stepscope.profiler import _events

        return getattr(_events, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__, *_OF_TORCH})
