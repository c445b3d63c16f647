"""The program's steps, counted as its optimizer or ``prof.step()`` makes them, and what is done between two of them."""

from stepscope import _recorder

_state = {"number": 0, "is_counted_by_profiler": False}
_listeners: list = []


def begin():
    """Count from 0: a capture was opened."""
    _state.update(number=0, is_counted_by_profiler=False)
    _listeners.clear()


def listen(listener):
    """Call ``listener(number)`` whenever step ``number`` is about to begin, on the thread that makes the steps."""
    _listeners.append(listener)


def optimizer_stepped(is_recorded):
    """An optimizer has stepped: a step ends, unless a profiler object of the program says when."""
    if is_recorded:
        _recorder.mark_step(_state["number"])
    if not _state["is_counted_by_profiler"]:
        _next_step(_state["number"] + 1)
    else:
        _state["number"] += 1


def profiler_stepped(number):
    """The program said that step ``number`` begins: from now on the optimizer's steps only mark."""
    _state["is_counted_by_profiler"] = True
    _next_step(number)


def _next_step(number):
    _state["number"] = number
    for listener in _listeners:
        try:
            listener(number)
        except Exception:
            pass  # A step of the program must go on whatever hangs on it.
