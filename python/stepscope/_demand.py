"""Who wants what of this process recorded: the command, profiler objects. All that is wanted is recorded once."""

import collections
import contextlib
import dataclasses
import os
import threading
from typing import Optional

from stepscope._options import Options

_STACKS = ("", "ops", "calls")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is to be recorded now."""

    has_host: bool
    """Operators, labels and all that goes with them; else only what devices do."""
    options: Options


_wants: dict = {}
_abandoned: collections.deque = collections.deque()


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """Whether a thread is changing what is wanted."""

    lock: threading.RLock = dataclasses.field(default_factory=threading.RLock)
    """Held by the thread that changes it."""
    is_busy: bool = False
    """The thread that holds the lock is in the middle of a change."""


_state = _State()


def add(who, wanted):
    """Note what ``who`` wants from now on."""
    _wants[who] = wanted


def remove(who):
    """``who`` wants nothing any longer."""
    _wants.pop(who, None)


def clear():
    """Nobody wants anything."""
    _wants.clear()


def together() -> Optional[Wanted]:
    """What all want; ``None`` when nobody wants anything. Of two ways to record devices, that of who came first."""
    wants = list(_wants.values())
    if not wants:
        return None
    of_host = [wanted.options for wanted in wants if wanted.has_host]
    everything: dict = {
        name: any(getattr(options, name) for options in of_host)
        for name in ("shapes", "memory", "modules", "gc", "counters", "stack_samples", "io")
    }
    everything["stacks"] = max((options.stacks for options in of_host), key=_STACKS.index, default="")
    everything["gpu"] = next((wanted.options.gpu for wanted in wants if wanted.options.gpu != "off"), "off")
    return Wanted(bool(of_host), dataclasses.replace(wants[0].options, **everything))


@contextlib.contextmanager
def alone():
    """Nobody else changes meanwhile what is wanted; what was abandoned meanwhile ends afterwards."""
    with _state.lock:
        # A signal's handler may come in between; it must not wait for the thread that it interrupts.
        was_busy, _state.is_busy = _state.is_busy, True
        try:
            yield
        finally:
            _state.is_busy = was_busy
    _end_abandoned()


def abandon(end):
    """Call ``end``, now or when nobody is :func:`alone`: a garbage collection may come anywhere, also within."""
    _abandoned.append(end)
    _end_abandoned()


def _end_abandoned():
    lock = _state.lock
    while _abandoned and not _state.is_busy and lock.acquire(blocking=False):
        try:
            _state.is_busy = True
            while _abandoned:
                end = _abandoned.popleft()
                try:
                    end()
                except Exception:
                    pass  # There is nobody to tell: it runs wherever an object happens to be collected.
        finally:
            _state.is_busy = False
            lock.release()


def _forget_threads():
    """In a forked child: the thread that held the lock is not here."""
    _state.lock, _state.is_busy = threading.RLock(), False


os.register_at_fork(after_in_child=_forget_threads)
