"""Does something as soon as a module is loaded, such as telling Dynamo how to trace what it cannot look into."""

import importlib.abc
import importlib.util
import sys


def when_loaded(register, name="torch._dynamo"):
    """Call ``register()`` now when the module is loaded, else as soon as it is; what goes wrong then is left aside."""
    if name in sys.modules:
        _attempt(register)
    else:
        sys.meta_path.insert(0, _Finder(name, register))


def _attempt(register):
    try:
        register()
    except Exception:
        pass  # The module is used as it is.


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the module as everybody else would."""

    def __init__(self, name, register):
        self._name, self._register = name, register
        self._is_asking = False

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self._is_asking:
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
