"""Records the calls of ``nn.Module``, each with the module's path in the model that it was first called in."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable

from stepscope import _recorder

# A model that calls new modules that are not part of it is not searched for each of them.
_MAX_SEARCHES_IN_VAIN = 16


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """The two functions that are ``nn.Module.__call__`` in turn."""

    original_call: Callable | None = None
    """The function that was wrapped last."""
    own_call: Callable | None = None
    """Our wrapper of it; None while modules are not recorded."""


_state = _State()


def start(torch, options):
    """Wrap ``nn.Module.__call__``, when the options want it."""
    module = torch.nn.Module
    if not options.modules or _state.own_call is not None:
        return
    _state.original_call = module.__call__
    _state.own_call = _wrap(module.__call__, torch.compiler.is_dynamo_compiling)
    module.__call__ = _state.own_call
    _tell_dynamo(_state.original_call, _state.own_call)


def stop():
    """Put back what was there, unless somebody else has wrapped it meanwhile."""
    import torch

    original, ours = _state.original_call, _state.own_call
    if ours is not None and torch.nn.Module.__dict__["__call__"] is ours:
        torch.nn.Module.__call__ = original
        _tell_dynamo(ours, original)
    if ours is not None and hasattr(original, "__code__"):
        _recorder.show(original.__code__)
    _state.own_call = None


def _wrap(original, is_compiling):
    enter, leave = _recorder.module_calls(_names.describe)
    # What the original does in every release so far; one that does more is called instead.
    names = getattr(getattr(original, "__code__", None), "co_names", None)
    is_known = names == ("_compiled_call_impl", "_call_impl")

    def __call__(self, *args, **kwargs):
        if is_compiling():
            return original(self, *args, **kwargs)
        enter(self)
        try:
            if is_known and self._compiled_call_impl is None:
                return self._call_impl(*args, **kwargs)
            return original(self, *args, **kwargs)
        finally:
            leave(self)

    __call__.__doc__ = original.__doc__
    __call__.__wrapped__ = original
    # In stacks the module stands in place of the function that calls it, as in those of torch.profiler.
    own = (is_compiling, __call__, original)
    for function in (enter, leave, *(getattr(function, "__code__", None) for function in own)):
        _recorder.hide(function)
    return __call__


def _tell_dynamo(before, after):
    """Dynamo takes a shortcut for modules whose ``__call__`` is the one it knows."""
    import sys

    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        known = sys.modules.get(name)
        if known is not None and getattr(known, "unpatched_nn_module_call", None) is before:
            known.unpatched_nn_module_call = after


class _Names:
    """What living modules are called: ``Class:Root.path``."""

    def __init__(self):
        self._modules = {}
        self._root_of = {}
        self._searches_in_vain = {}
        self._roots_of_class = {}
        # Modules that live longer than this file's names are forgotten, too.
        self._forget_module = _recorder.forget_module

    def describe(self, module, outermost):
        """Name ``module``, called inside the module with the id ``outermost`` (or none), and those that belong to it."""
        root = self._modules.get(outermost, lambda: None)()
        if root is not None and self._searches_in_vain.get(outermost, 0) < _MAX_SEARCHES_IN_VAIN:
            self._name_all(root, self._root_name(root))
            if self._is_named(module):
                return
            self._searches_in_vain[outermost] = self._searches_in_vain.get(outermost, 0) + 1
        self._name_all(module, self._root_name(module))

    def _is_named(self, module):
        known = self._modules.get(id(module))
        return known is not None and known() is module

    def _root_name(self, root):
        """The class; with a number where living models of this class are called by their own as well."""
        name = type(root).__name__
        roots = self._roots_of_class.setdefault(name, {})
        for number in list(roots):
            if roots[number]() is None:
                del roots[number]
        number = next((number for number, known in roots.items() if known() is root), None)
        if number is None:
            number = next(number for number in range(1, len(roots) + 2) if number not in roots)
            roots[number] = weakref.ref(root)
        return name if number == 1 else f"{name}#{number}"

    def _name_all(self, root, name):
        members = list(root.named_modules())
        keys = {id(module) for _, module in members} - {id(root)}
        parameters = None
        for path, module in members:
            # What was called by its own before it was known as a part of this model gets its place now.
            if not self._is_named(module) or self._root_of[id(module)] in keys:
                # Only now: a model may be searched in vain.
                parameters = parameters or _parameters(root)
                text = f"{type(module).__name__}:{name}{'.' if path else ''}{path}"
                self._name(module, text, parameters.get(id(module), {}).values())
                self._root_of[id(module)] = id(root)

    def _name(self, module, name, parameters):
        key = id(module)
        self._modules[key] = weakref.ref(module, lambda _: self._forget(key))
        trained = sum(count for count, is_trained in parameters if is_trained)
        _recorder.name_module(key, name, (sum(count for count, _ in parameters), trained))

    def _forget(self, key):
        self._forget_module(key)
        self._modules.pop(key, None)
        self._root_of.pop(key, None)
        self._searches_in_vain.pop(key, None)


def _parameters(root):
    """By the id of each module in ``root``, by the id of each parameter of it and of the modules in it: how many numbers
    it has, and whether it is trained."""
    from torch._C import DisableTorchFunction

    found = {}

    def visit(module):
        if id(module) not in found:
            own = found[id(module)] = {}
            own.update((id(one), _size(one)) for one in module._parameters.values() if one is not None)
            for child in module._modules.values():
                if child is not None:
                    own.update(visit(child))
        return found[id(module)]

    # A program's modes and subclasses do not hear of it.
    with DisableTorchFunction():
        visit(root)
    return found


def _size(parameter):
    try:
        # DeepSpeed leaves parameters empty that it has divided among ranks.
        return int(getattr(parameter, "ds_numel", None) or parameter.numel()), bool(parameter.requires_grad)
    except Exception:
        # One that is not made yet has no size.
        return 0, False


_names = _Names()
