"""The program's steps, as a framework, ``prof.step()`` or its optimizer makes them, and what is done between two of them."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable

from stepscope import _recorder

#: Who says where steps end, by weight: one of more weight knows more of the loop. An engine runs inside a trainer's loop.
ENGINE, TRAINER, PROGRAM = 1, 2, 3


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """The present step, and who says when it ends.

    A framework has priority over a profiler object of ours, that one over one of ``torch.profiler``, and that one over
    the optimizer.
    """

    number: int = 0
    """The number of the present step."""
    free: int = 0
    """The first number that no step has which an optimizer or a framework has made."""
    marker: tuple[int, object] | None = None
    """The framework, or the program itself, that says where steps end: its weight, and what tells it from others."""
    is_step_open: bool = False
    """The recording has the begin of the present step, as the marker said it."""
    profiler: object = None
    """Our profiler object that counts steps; None: none of ours does."""
    open_of_profilers: int = 0
    """How many steps are open that our profiler objects have begun."""
    is_counted_by_other: bool = False
    """An object of ``torch.profiler`` has made a step and has not stopped."""
    has_optimizer: bool = False
    """An optimizer has stepped."""
    has_passes: bool = False
    """A server has made a pass of its model."""
    failed: list[str] = dataclasses.field(default_factory=list)
    """Steps that an exception has ended, and which."""


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


def is_marked():
    """A framework, or the program itself, says where steps end."""
    return _state.marker is not None


def is_marker(owner):
    """``owner`` says where steps end."""
    return _state.marker is not None and _state.marker[1] is owner


def loop_begins(weight, owner, number=None):
    """``owner`` says from now on where steps end, unless one of more weight does. A step begins: that with this number,
    where it is known and no step has it."""
    if _recorder.is_open() and (_state.marker is None or _state.marker[0] <= weight):
        _set_marker(weight, owner)
        if number is not None:
            # What profiler objects have counted may be no steps, such as batches of an evaluation.
            _state.number = max(number, _state.free)
        _drop_step()
        _begin_step()


def step_ended(weight, owner, kind="train", micro=False):
    """A step of ``owner``'s loop has ended. Only a whole one of training counts: what ran before the end of another kind
    is outside of steps, and a part of a step stands in the timeline."""
    # The first one may end a step that the optimizer has counted already.
    is_counted = _state.has_optimizer and not is_marker(owner)
    if not _recorder.is_open() or not _take(weight, owner):
        return
    if micro:
        _mark_micro_step(kind)
    elif kind == "train":
        if _state.is_step_open:
            _recorder.step_end(_state.number)
            _state.is_step_open = False
        _state.free = _state.number + (not is_counted)
        _next_step(_state.free)
        _begin_step()
    else:
        _drop_step()
        _begin_step()


def other_ended(weight, kind):
    """Something else than a step has ended in a loop of this weight, such as an evaluation: the next step begins. Without
    such a loop, as where one only evaluates, that is nothing."""
    if _state.marker is not None and _state.marker[0] == weight:
        step_ended(*_state.marker, kind)


def loop_ended(owner):
    """``owner`` makes no more steps: what runs from the end of the last one on is outside of steps."""
    if is_marker(owner):
        _drop_step()
        _state.marker = None


def loop_failed(weight, error):
    """A loop of this weight, if there is one, makes no more steps because of ``error``."""
    if _state.marker is not None and _state.marker[0] == weight:
        step_failed(error)
        loop_ended(_state.marker[1])


def step_failed(error):
    """What belongs to the step that is open has failed: the run says so."""
    if _state.is_step_open:
        _state.failed.append(f"step {_state.number}: {type(error).__name__}")
        # Enough to see what fails.
        _recorder.set_fact("steps_failed", "; ".join(_state.failed[:20]))


def _take(weight, owner):
    """Whether ``owner`` is the marker, now at the latest."""
    if _state.marker is None or _state.marker[0] < weight:
        _set_marker(weight, owner)
    return is_marker(owner)


def _set_marker(weight, owner):
    _state.marker = weight, owner
    while _state.open_of_profilers > 0:
        _recorder.step_drop()
        _state.open_of_profilers -= 1
    # Labels of profiler objects are no steps in this process: they begin and end where they like.
    _recorder.set_fact("steps_are_marked", "by a framework or the program")


def _begin_step():
    if _is_recording():
        _recorder.step_begin(_state.number)
        _state.is_step_open = True


def _drop_step():
    if _state.is_step_open:
        _recorder.step_drop()
        _state.is_step_open = False


def _is_recording():
    from stepscope import _recording

    return _recording.is_on()


def _mark_micro_step(kind):
    from stepscope._annotate import annotate

    with annotate(f"{kind} micro-step"):
        pass


class Primary:
    """Of several objects that step, such as optimizers or engines, the one whose steps count: the first that stepped, until
    it has not for a while."""

    def __init__(self):
        self._first, self._others = lambda: None, 0

    def is_stepped_by(self, one):
        """``one`` has stepped: whether that counts."""
        if self._first() is None or self._others > 100:
            self._first = weakref.ref(one)
        is_first = self._first() is one
        self._others = 0 if is_first else self._others + 1
        return is_first


def optimizer_stepped(is_recorded):
    """An optimizer has stepped: a step ends, unless a profiler object of the program says when."""
    if _state.marker is not None:
        return
    if is_recorded:
        _recorder.mark_step(_state.number)
    _state.has_optimizer = True
    _state.free = _state.number + 1
    if _state.profiler is not None:
        _state.number += 1
    elif not _state.is_counted_by_other:
        _next_step(_state.number + 1)


def pass_begins():
    """A server begins a pass of its model. Its label says what it is; here it moves on what is done between steps."""
    if _state.marker is None and _state.profiler is None and not _state.is_counted_by_other:
        if _state.has_passes:
            _next_step(_state.number + 1)
        _state.has_passes = True


def profiler_stepped(number, profiler):
    """The program said that step ``number`` begins: from now on the optimizer's steps only mark."""
    if _state.marker is not None:
        return
    _state.profiler = profiler
    _next_step(number)


def profiler_begins_step(number):
    """One of our profiler objects begins a step of which it has no label; False where that is none."""
    if _state.marker is not None:
        return False
    _recorder.step_begin(number)
    _state.open_of_profilers += 1
    return True


def profiler_ends_step(number):
    """The step ends, unless somebody who knows more of the loop has come meanwhile."""
    if _state.open_of_profilers > 0:
        _recorder.step_end(number)
        _state.open_of_profilers -= 1


def profiler_leaves_step():
    """The step stays open, and counts as cut."""
    _state.open_of_profilers = max(0, _state.open_of_profilers - 1)


def profiler_stopped(profiler):
    """From now on the optimizer counts again, where that profiler did."""
    if _state.profiler is profiler:
        _state.profiler = None


def other_profiler_stepped(is_recorded, has_label):
    """The same by an object of torch.profiler, whose own numbers begin anew with each object."""
    if _state.marker is not None or _state.profiler is not None:
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
