"""Samples what the threads of Python run, some times a second: which line each is in, and what it waits for."""

import dataclasses
import os

from stepscope import _recorder, _stacks
from stepscope._say import say


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """Whether threads are sampled."""

    is_found: bool = False
    """Where this Python keeps its frames was found, or looked for in vain."""
    refusal: str = ""
    """Why they cannot be sampled."""


_state = _State()


def start(torch, options):
    """Sample, when the options want it."""
    if not options.stack_samples or _state.refusal:
        return
    if not _state.is_found:
        _state.is_found = True
        _Look.outer()
    try:
        own = os.path.dirname(os.path.abspath(__file__)) + os.sep
        _recorder.start_stack_samples(_stacks.path_prefixes(torch), _stacks.library_prefixes(torch), own)
    except RuntimeError as refusal:
        _state.refusal = str(refusal)
        _recorder.set_fact("stack_samples_refused", _state.refusal)
        say(f"lines of Python are not sampled: {_state.refusal}")


def stop():
    """Sample no longer."""
    _recorder.stop_stack_samples()


class _Look:
    """Functions that call each other, in which the recorder looks for their frames. Their names differ with and without
    the class."""

    @staticmethod
    def outer():
        _recorder.look_at_frames()
        return _Look.middle(1)

    @staticmethod
    def middle(first):
        second = first + 1
        _recorder.look_at_frames()
        return _Look.inner(second)

    @staticmethod
    def inner(second):
        third = second + 1
        fourth = third + 1
        _recorder.look_at_frames()
        return fourth
