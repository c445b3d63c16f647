"""The ranges that DeepSpeed marks for NVTX, most of them in ZeRO, as labels: on any accelerator, also where NVTX does nothing.

A function of DeepSpeed that raises an error leaves its range open. So what an engine's method has left open is closed with it.
"""

from __future__ import annotations

import threading

from stepscope import _recorder, _recording
from stepscope._annotate import annotate

#: Those that say what a phase says already, and one that comes before nearly all others and does next to nothing.
_LEFT_OUT = {
    "DeepSpeedEngine.forward",
    "DeepSpeedEngine.backward",
    "DeepSpeedEngine.allreduce_gradients",
    "get_all_parameters",
}


class _Open(threading.local):
    def __init__(self):
        self.labels = []
        """For each open range of this thread its label; None where there is none."""


_open = _Open()


def watch(accelerator):
    """Label the ranges of an accelerator, once."""
    push, pop = accelerator.range_push, accelerator.range_pop
    if hasattr(push, "__stepscope__"):
        return

    def range_push(msg, *args, **kwargs):
        _open.labels.append(_begin(msg))
        return push(msg, *args, **kwargs)

    def range_pop(*args, **kwargs):
        if _open.labels:
            _end(_open.labels.pop())
        return pop(*args, **kwargs)

    range_push.__stepscope__ = True
    for function in (range_push, range_pop, _begin, _end):
        _recorder.hide(function.__code__)
    accelerator.range_push, accelerator.range_pop = range_push, range_pop


def depth():
    """How many ranges are open on this thread."""
    return len(_open.labels)


def close_to(depth):
    """Close what was opened since :func:`depth` said that."""
    while len(_open.labels) > depth:
        _end(_open.labels.pop())


def _begin(name):
    # With --nvtx, the ranges of a GPU are recorded as such.
    if name in _LEFT_OUT or not _recorder.are_labels_wanted() or getattr(_recording.options(), "nvtx", False):
        return None
    # `Stage3.create_hooks.<locals>.reduce_grads`: where a function is made says less than its name.
    label = annotate(str(name).rpartition("<locals>.")[2])
    label.__enter__()
    return label


def _end(label):
    if label is not None:
        label.__exit__(None, None, None)
