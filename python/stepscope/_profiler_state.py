"""What PyTorch only tells its own profiler: allocations, and the ranges that compiled code sets around itself."""

from __future__ import annotations

import dataclasses
import os

from stepscope import _other_profilers, _recorder
from stepscope._say import say


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """The result of the probe."""

    is_probed: bool = False
    """The probe has run."""
    refusal: str | None = None
    """Why it failed; None if it succeeded, or has not run."""


_state = _State()


def start(torch, options):
    """Stand in for PyTorch's profiler where there is none. When that cannot be proven safe: say so once."""
    if not _state.is_probed:
        _state.is_probed = True
        _state.refusal = _refusal(torch)
        if _state.refusal is not None:
            say(f"not recording memory and ranges of compiled code of process {os.getpid()}: {_state.refusal}")
    if _state.refusal is not None:
        _recorder.set_fact("profiler_state_refused", _state.refusal)
        return
    _other_profilers.make_room(options.memory)
    _recorder.start_state(options.memory)
    _other_profilers.claim_enabled(torch, True)
    _other_profilers.note_missing_memory()


def stop():
    """Record neither any longer."""
    if _state.is_probed and _state.refusal is None:
        _recorder.stop_state()
        _other_profilers.claim_enabled(None, False)


def _refusal(torch):
    try:
        _recorder.probe_state(os.path.join(os.path.dirname(torch.__file__), "lib"))
    except Exception as error:
        return str(error)
    return None
