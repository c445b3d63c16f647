"""Tells Dynamo, when it is loaded, how to trace what it cannot look into."""

import importlib.abc
import importlib.util
import sys

_DYNAMO = "torch._dynamo"


def when_loaded(register):
    """Call ``register()`` now when Dynamo is loaded, else as soon as it is; what goes wrong then is left aside."""
    if _DYNAMO in sys.modules:
        _attempt(register)
    else:
        sys.meta_path.insert(0, _Finder(register))


def _attempt(register):
    try:
        register()
    except Exception:
        pass  # Compiled code then runs such a call outside of its graph.


class _Finder(importlib.abc.MetaPathFinder):
    """Finds Dynamo as everybody else would."""

    def __init__(self, register):
        self._register = register
        self._is_asking = False

    def find_spec(self, name, path=None, target=None):
        if name != _DYNAMO or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_asking = False
        if spec is None or spec.loader is None:
            return None
        # Shadows the method of this one loader, and only once.
        execute, register, finder = spec.loader.exec_module, self._register, self

        def exec_module(module):
            execute(module)
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
            _attempt(register)

        spec.loader.exec_module = exec_module
        return spec
