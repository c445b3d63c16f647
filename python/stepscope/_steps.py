"""The program's steps, counted as its optimizer or ``prof.step()`` makes them, and what is done between two of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from stepscope import _recorder


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """The present step, and who says when it ends.

    A profiler object of ours has priority over one of ``torch.profiler``, and that one over the optimizer.
    """

    number: int = 0
    """The number of the present step."""
    profiler: object = None
    """Our profiler object that counts steps; None: none of ours does."""
    is_counted_by_other: bool = False
    """An object of ``torch.profiler`` has made a step and has not stopped."""
    has_optimizer: bool = False
    """An optimizer has stepped."""


_state = _State()
_listeners: list[Callable[[int], None]] = []


def begin():
    """Count from 0: a capture was opened."""
    global _state
    _state = _State()
    _listeners.clear()


def listen(listener):
    """Call ``listener(number)`` whenever step ``number`` is about to begin, on the thread that makes the steps."""
    _listeners.append(listener)


def is_listened_to():
    """True where something is done between steps."""
    return bool(_listeners)


def optimizer_stepped(is_recorded):
    """An optimizer has stepped: a step ends, unless a profiler object of the program says when."""
    if is_recorded:
        _recorder.mark_step(_state.number)
    _state.has_optimizer = True
    if _state.profiler is not None:
        _state.number += 1
    elif not _state.is_counted_by_other:
        _next_step(_state.number + 1)


def profiler_stepped(number, profiler):
    """The program said that step ``number`` begins: from now on the optimizer's steps only mark."""
    _state.profiler = profiler
    _next_step(number)


def profiler_stopped(profiler):
    """From now on the optimizer counts again, where that profiler did."""
    if _state.profiler is profiler:
        _state.profiler = None


def other_profiler_stepped(is_recorded, has_label):
    """The same by an object of torch.profiler, whose own numbers begin anew with each object."""
    if _state.profiler is not None:
        return
    is_first = not _state.is_counted_by_other
    _state.is_counted_by_other = True
    if is_first and _state.has_optimizer:
        return  # The optimizer has counted the step that ends.
    if is_recorded and not has_label and not _state.has_optimizer:
        _recorder.mark_step(_state.number)
    _next_step(_state.number + 1)


def other_profiler_stopped():
    """From now on the optimizer counts again."""
    _state.is_counted_by_other = False


def _next_step(number):
    _state.number = number
    for listener in _listeners:
        try:
            listener(number)
        except Exception:
            pass  # A step of the program must go on whatever hangs on it.
