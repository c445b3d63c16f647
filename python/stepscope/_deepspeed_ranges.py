"""The ranges that DeepSpeed marks for NVTX, most of them in ZeRO, as labels: on any accelerator, also where NVTX does nothing.

A function of DeepSpeed that raises an error leaves its range open. So what an engine's method has left open is closed with it.
"""

from __future__ import annotations

import functools
import threading

from stepscope import _recorder, _recording
from stepscope._annotate import annotate

#: Those that say what a phase says already, and those that are entered for each parameter or module and do next to nothing
#: themselves: what they are a part of has a range as well.
_LEFT_OUT = {
    "DeepSpeedEngine.forward",
    "DeepSpeedEngine.backward",
    "DeepSpeedEngine.allreduce_gradients",
    "get_all_parameters",
    "free_param",
    "Init._partition_param",
    "PartitionedParameterCoordinator.__params_to_release",
    "PartitionedParameterCoordinator.__release_param",
    "_run_before_backward_function",
}


def _shortened(name):
    """The name of a range's label; None for one that is left out."""
    # `Stage3.create_hooks.<locals>.reduce_grads`: where a function is made says less than its name.
    label = name.rpartition("<locals>.")[2]
    return None if label in _LEFT_OUT else label


_short = functools.lru_cache(1_000)(_shortened)


class _Open(threading.local):
    def __init__(self):
        self.labels = []
        """For each open range of this thread its label; None where there is none."""


_open = _Open()


def watch(accelerator):
    """Label the ranges of an accelerator, in the capture that is open now."""
    global _label_of
    # With --nvtx, the ranges of a GPU are recorded as such.
    _label_of = _no_label if getattr(_recording.options(), "nvtx", False) else _short
    push, pop = accelerator.range_push, accelerator.range_pop
    if hasattr(push, "__stepscope__"):
        return

    # There are many in a step: what is done for each of them is done here.
    def range_push(msg, *args, **kwargs):
        name = _label_of(msg)
        if name is None:
            _open.labels.append(None)
        else:
            label = annotate(name)
            label.__enter__()
            _open.labels.append(label)
        return push(msg, *args, **kwargs)

    def range_pop(*args, **kwargs):
        if _open.labels:
            label = _open.labels.pop()
            if label is not None:
                label.__exit__(None, None, None)
        return pop(*args, **kwargs)

    range_push.__stepscope__ = True
    for function in (range_push, range_pop, _shortened, _no_label):
        _recorder.hide(function.__code__)
    accelerator.range_push, accelerator.range_pop = range_push, range_pop


def depth():
    """How many ranges are open on this thread."""
    return len(_open.labels)


def close_to(depth):
    """Close what was opened since :func:`depth` said that."""
    while len(_open.labels) > depth:
        label = _open.labels.pop()
        if label is not None:
            label.__exit__(None, None, None)


def _no_label(name):
    return None


_label_of = _short
