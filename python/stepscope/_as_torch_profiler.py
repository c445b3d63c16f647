"""Gives programs and frameworks that call ``torch.profiler.profile`` ours instead, unchanged.

What PyTorch itself, Triton and the backends of other vendors call stays theirs: they read events of devices from it to
choose among kernels. So do ``torch.profiler.record_function`` and ``torch.autograd.profiler.profile``.
"""

from __future__ import annotations

import inspect
import os
import sys

from stepscope import _imports
from stepscope._say import say

#: ``1``, or ``no-json``: exports of Chrome JSON are left out, since the run has all that they would have.
VARIABLE = "STEPSCOPE_AS_TORCH_PROFILER"

_OWN_CALLERS = ("torch", "torch_npu", "triton")
_is_told = False


def is_wanted():
    """The command or the environment asks for it."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def is_export_wanted():
    """False where exports of Chrome JSON are to be left out, which is said once."""
    global _is_told
    if os.environ.get(VARIABLE) != "no-json":
        return True
    if not _is_told:
        _is_told = True
        from stepscope import _recording

        say(f"no Chrome trace is written, as {VARIABLE}=no-json says; the run is {_recording.run()}")
    return False


def replace(torch):
    """Put ours in the place of PyTorch's, unless another package has put its own there."""
    original = torch.profiler.profile
    if original.__module__ != "torch.profiler.profiler" or isinstance(original, _Replacing):
        return
    from stepscope.profiler._profile import make_traceable, profile

    replacement = _Replacing("profile", (profile,), {"__doc__": profile.__doc__, "__module__": original.__module__})
    replacement.original = original
    replacement.__signature__ = inspect.signature(profile)
    _imports.when_loaded(lambda: make_traceable(replacement, original))
    for module in (torch.profiler, sys.modules["torch.profiler.profiler"]):
        module.profile = replacement


class _Replacing(type):
    """The class of the class that is in the place: it makes objects of ours, and knows those of PyTorch, too."""

    original: type | None = None

    def __call__(cls, *args, **kwargs):
        if not _is_in_place(cls):
            # Somebody's own class made of it.
            return super().__call__(*args, **kwargs)
        caller = sys._getframe(1).f_globals.get("__name__") or ""
        is_own = caller.split(".")[0] in _OWN_CALLERS
        return (cls.original if is_own else cls.__base__)(*args, **kwargs)

    def __instancecheck__(cls, instance):
        known = (cls.__base__, cls.original) if _is_in_place(cls) else ()
        return isinstance(instance, known) or super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass):
        known = (cls.__base__, cls.original) if _is_in_place(cls) else ()
        return issubclass(subclass, known) or super().__subclasscheck__(subclass)


def _is_in_place(cls):
    return "original" in vars(cls)
