"""Who else listens to devices: only one profiler may at a time.

Each session of ``torch.profiler`` counts, whatever activities it is asked for: on a machine with a GPU, Kineto has CUPTI
listen to calls of the runtime also for a session of the CPU. All of this is called under the lock of ``_device``.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time

from stepscope import _device_libraries, _recorder

_BEGINS = ("_prepare_profiler", "_enable_profiler")
_ENDS = "_disable_profiler"
# Stands for the thread of a session that began before anybody looked.
_UNSEEN = 0


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """Sessions of other profilers, and what was not recorded because of them."""

    threads: set[int] = dataclasses.field(default_factory=set)
    """Threads whose session has begun and not ended."""
    was_seen: bool = False
    """A session of another profiler was seen."""
    gap_began_ns: int | None = None
    """Since when what is wanted is not recorded; None while there is no such gap."""
    gap_count: int = 0
    """How many gaps of this capture are over."""
    gaps_ns: int = 0
    """The total duration of these gaps."""


_state = _State()


def have_devices():
    """True while another profiler listens."""
    return bool(_state.threads)


def are_idle(torch):
    """True when the other subscriber of the device's profiler is known to be PyTorch's, which does not listen now."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    # It stays subscribed once it has run, which may have been before anybody looked.
    was_seen = _state.was_seen or _recorder.is_kineto_used(folder)
    return bool(was_seen) and not have_devices() and not _device_libraries.tool()


def note_unseen(is_running):
    """What ran before anybody looked: ``is_running`` when it still does."""
    if is_running:
        _state.threads.add(_UNSEEN)


def begin(function):
    """The calling thread's session is about to begin; True when this call is the one that begins it."""
    thread = threading.get_ident()
    if function not in _BEGINS or thread in _state.threads:
        return False
    _state.threads.add(thread)
    _state.was_seen = True
    return True


def end(function, has_failed, has_begun, result):
    """A call is over, which ``has_begun`` a session or not; True when it left no such session."""
    threads, thread = _state.threads, threading.get_ident()
    if function == _ENDS:
        _state.was_seen = True
        if thread in threads or _UNSEEN in threads:
            threads.discard(thread if thread in threads else _UNSEEN)
        elif _was_running(result):
            # One of all threads, which any of them may end. Kineto has one session at a time.
            threads.clear()
    elif has_failed and has_begun:
        threads.discard(thread)
    else:
        return False
    return not threads


def _was_running(result):
    """Whether what ``_disable_profiler`` gives is of a session; where there was none it gives an empty one."""
    began_ns = getattr(result, "trace_start_ns", None)
    return began_ns is not None and began_ns() > 0


def begin_gap():
    """What is wanted is not recorded from now on."""
    if _state.gap_began_ns is None:
        _state.gap_began_ns = time.monotonic_ns()


def end_gap():
    """It is, or is wanted no longer: say for how long it was not."""
    since_ns, _state.gap_began_ns = _state.gap_began_ns, None
    if since_ns is None:
        return
    _state.gap_count += 1
    _state.gaps_ns += time.monotonic_ns() - since_ns
    times = "once" if _state.gap_count == 1 else f"{_state.gap_count} times"
    gaps_ms = _state.gaps_ns / 1e6
    _recorder.set_fact("device_refused", f"torch.profiler had the device {times}, {gaps_ms:.0f} ms in all")


def begin_capture():
    """What is counted is counted anew."""
    _state.gap_count, _state.gaps_ns = 0, 0


def forget():
    """In a forked child, whose only thread is the one that forked."""
    _state.threads &= {threading.get_ident()}
    _state.gap_began_ns, _state.gap_count, _state.gaps_ns = None, 0, 0
