"""Does something as soon as a module is loaded, such as telling Dynamo how to trace what it cannot look into."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable

#: What is done when a module is loaded, by its name.
_waiting: dict[str, list[Callable[[], object]]] = {}


def when_loaded(register, name="torch._dynamo"):
    """Call ``register()`` now when the module is loaded, else as soon as it is; what goes wrong then is left aside."""
    is_there, spec = name in sys.modules, getattr(sys.modules.get(name), "__spec__", None)
    is_loading = getattr(spec, "_initializing", False)
    if is_there and not is_loading:
        _attempt(register)
        return
    _waiting.setdefault(name, []).append(register)
    if is_loading:
        spec.__class__ = _LoadingSpec
    elif _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _LoadingSpec(importlib.machinery.ModuleSpec):
    """That of a module which is being loaded: Python says there when it is."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            self.__class__ = importlib.machinery.ModuleSpec
            # One that failed may be tried again.
            for register in _waiting.pop(self.name, ()) if self.name in sys.modules else ():
                _attempt(register)


def _attempt(register):
    try:
        register()
    except Exception:
        pass  # The module is used as it is.


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are waited for as everybody else would."""

    def __init__(self):
        self._asking = set()

    def find_spec(self, name, path=None, target=None):
        if name not in _waiting or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.discard(name)
        if spec is None or spec.loader is None:
            return None
        # Shadows the method of this one loader, and only once.
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            for register in _waiting.pop(name, ()):
                _attempt(register)
            if not _waiting and self in sys.meta_path:
                sys.meta_path.remove(self)

        spec.loader.exec_module = exec_module
        return spec


_finder = _Finder()
