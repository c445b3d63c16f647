"""Lets PyTorch's own profiler start and stop in a process that we record.

A thread of PyTorch has room for one profiler state. Ours gives way while another one starts, and comes back when that
has stopped and all has ended that began under it. They are watched from the start: what begins under one of them may
still be open when we begin to record.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import types

from stepscope import _device, _device_others, _imports, _listeners, _recorder
from stepscope._say import say

# What starts, stops or changes a profiler of the calling thread, and where programs find it.
_STARTS = ("_enable_profiler", "_enable_profiler_legacy")
_STOPS = ("_disable_profiler", "_disable_profiler_legacy")
_FUNCTIONS = ("_prepare_profiler", *_STARTS, *_STOPS, "_toggle_collection_dynamic")
_MODULES = ("torch._C._autograd", "torch.autograd", "torch.autograd.profiler", "torch.autograd.profiler_legacy")


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """Whether other profilers run, and what Stepscope records meanwhile."""

    torch: types.ModuleType | None = None
    """The torch module whose functions that start and stop profilers are wrapped; None: they are not."""
    is_recording: bool = False
    """Stepscope records operators."""
    has_memory: bool = False
    """Stepscope records memory."""
    is_memory_missed: bool = False
    """The metadata says that another profiler received allocations instead."""
    is_other_enabled: bool = False
    """Another profiler has set PyTorch's flag that a profiler runs."""


_state = _State()


def make_room(has_memory):
    """Let other profilers have the place that ours has on each thread."""
    _state.has_memory = has_memory
    _state.is_memory_missed = False
    _watch()


def _watch():
    """Be told when another profiler starts or stops, from now on. PyTorch is loaded, perhaps in part."""
    torch = sys.modules["torch"]
    if _state.torch is not None or "torch.autograd.profiler" not in sys.modules:
        return
    _state.torch = torch
    _listeners.pass_labels_on()
    modules = [sys.modules[name] for name in _MODULES if name in sys.modules]
    for name in _FUNCTIONS:
        original = getattr(torch._C._autograd, name, None)
        if original is None:
            continue
        wrapped = _beside_us(original)
        for module in modules:
            if getattr(module, name, None) is original:
                setattr(module, name, wrapped)
    _wrap_claim(torch.autograd.profiler)


def claim_enabled(torch, is_recording):
    """Say to compiled code that a profiler runs: only then does it set its ranges."""
    _state.is_recording = is_recording
    set_enabled = getattr((torch or _state.torch).autograd.profiler, "_set_is_profiler_enabled", None)
    if set_enabled is not None:
        set_enabled(_state.is_other_enabled)


def note_missing_memory():
    """Write down when another profiler hears of the calling thread's memory instead of us."""
    is_wanted = _state.is_recording and _state.has_memory and not _state.is_memory_missed
    if is_wanted and not _recorder.is_attending():
        _state.is_memory_missed = True
        _recorder.set_fact("memory_not_recorded", "another profiler ran on a thread of it")


def _wrap_claim(profiler):
    """What another profiler says when it stops must not end what we say, and the other way round."""
    set_enabled = getattr(profiler, "_set_is_profiler_enabled", None)
    if set_enabled is None:
        return
    _state.is_other_enabled = bool(getattr(profiler, "_is_profiler_enabled", False))
    _device_others.note_unseen(_state.is_other_enabled)

    @functools.wraps(set_enabled)
    def set_enabled_beside_us(enable):
        _state.is_other_enabled = enable
        set_enabled(enable or _state.is_recording)

    profiler._set_is_profiler_enabled = set_enabled_beside_us


def _beside_us(function):
    @functools.wraps(function)
    def with_empty_slot(*args, **kwargs):
        _recorder.step_aside()
        has_begun = _tell(_device.give_way, function.__name__)
        has_failed, result = True, None
        try:
            result = function(*args, **kwargs)
            has_failed = False
            if function.__name__ in _STARTS:
                _recorder.others_begin()
            elif function.__name__ in _STOPS:
                _recorder.others_end()
            return result
        finally:
            _recorder.step_back()
            note_missing_memory()
            _tell(_device.come_back, function.__name__, has_failed, has_begun, result)

    own_functions = (_recorder.step_aside, _recorder.step_back, _recorder.others_begin, _recorder.others_end)
    for own in (with_empty_slot.__code__, *own_functions):
        _recorder.hide(own)
    return with_empty_slot


def _tell(listener, *arguments):
    """Only one profiler may listen to a device; whatever fails here must not fail in the other one."""
    try:
        return listener(*arguments)
    except Exception as error:
        say(f"not recording the GPU of process {os.getpid()}: {error}")
        return False


_imports.when_loaded(_watch, "torch")
