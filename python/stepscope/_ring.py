"""The flight recorder: when what is in the ring is kept."""

from __future__ import annotations

import collections
import dataclasses
import signal
import sys
import time
from collections.abc import Callable

from stepscope import _recorder, _steps

# Steps that a slow one is compared with, at most and at least.
_STEPS = 50
_FEWEST_STEPS = 10


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """Whether the flight recorder runs, and the hook for exceptions that end the program."""

    is_on: bool = False
    """The flight recorder runs."""
    own_hook: Callable | None = None
    """Our ``sys.excepthook``; None while it is not set. The hook of another tool may have replaced it and call it."""
    previous_hook: Callable | None = None
    """The ``sys.excepthook`` before ours, which calls it."""


_state = _State()


def seconds_of(ring):
    """How many seconds ``30``, ``"30s"``, ``"500ms"`` or ``"2m"`` are."""
    if not isinstance(ring, str):
        seconds = float(ring or 0)
    else:
        number = ring.strip().rstrip("hms")
        unit = ring.strip()[len(number) :]
        units = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600}
        try:
            seconds = float(number) * units[unit]
        except (ValueError, KeyError):
            raise ValueError(f'ring is a number of seconds, or a text like "30s", not {ring!r}') from None
    if not 0 <= seconds < 1e9:
        raise ValueError(f"ring is a time, not {ring!r}")
    return seconds


def keep(because="asked"):
    """Keep what is in the ring, in this process and all others of the run; see :func:`stepscope.keep`."""
    return _recorder.keep(str(because))


def start(options):
    """Keep what is in the ring on SIGUSR2, on an exception that ends the program, and on a slow step."""
    if not options.ring:
        return
    _recorder.keep_on_signal(signal.SIGUSR2)
    _state.is_on = True
    # Another tool may have put its own hook over ours: that one calls ours.
    if _state.own_hook is None:
        _state.previous_hook, _state.own_hook = sys.excepthook, _keep_and_go_on
        sys.excepthook = _keep_and_go_on
    if options.slow_step:
        _steps.listen(_SlowSteps(options.slow_step, options.ring))


def stop():
    """Keep nothing any more."""
    _state.is_on = False
    if sys.excepthook is _state.own_hook:
        sys.excepthook = _state.previous_hook
        _state.own_hook = None


def keep_on(exception):
    """Keep what is in the ring when ``exception`` is one that tells of trouble."""
    if _state.is_on and isinstance(exception, Exception):
        keep(f"exception {type(exception).__name__}")


def _keep_and_go_on(kind, exception, traceback):
    try:
        keep_on(exception)
    except Exception:
        pass  # The program's own error is what must be seen.
    (_state.previous_hook or sys.__excepthook__)(kind, exception, traceback)


class _SlowSteps:
    """Keeps the ring after a step that took more than ``ratio`` times the median of those before."""

    def __init__(self, ratio, ring):
        self._ratio = ratio
        self._pause_ns = int(ring * 1e9)
        self._durations_ns = collections.deque(maxlen=_STEPS)
        self._began_ns = None
        self._kept_ns = None

    def __call__(self, number):
        now_ns = time.perf_counter_ns()
        began_ns, self._began_ns = self._began_ns, now_ns
        if began_ns is None:
            return
        duration_ns = now_ns - began_ns
        if len(self._durations_ns) >= _FEWEST_STEPS:
            # Not by `statistics`: that takes as long to import as a step.
            median_ns = sorted(self._durations_ns)[len(self._durations_ns) // 2]
            # What is kept holds all of the ring: another slow step within it is in it.
            is_new = self._kept_ns is None or now_ns - self._kept_ns > self._pause_ns
            if duration_ns > self._ratio * median_ns and is_new:
                self._kept_ns = now_ns
                keep(f"slow_step {number - 1}: {duration_ns / 1e6:.1f} ms, median {median_ns / 1e6:.1f} ms")
        self._durations_ns.append(duration_ns)
