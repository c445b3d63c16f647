"""Records a process that ``stepscope record`` started, from the moment it has imported PyTorch."""

import os
import sys

from stepscope._say import say


def record_when_torch_is_imported():
    """Record now when PyTorch is imported already, else as soon as it is."""
    if "torch" in sys.modules:
        start(sys.modules["torch"])
    elif not any(isinstance(finder, _TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TorchFinder())


def start(torch):
    """Open this process's capture and hook PyTorch; on trouble print one line and leave the program alone."""
    try:
        from stepscope import _as_torch_profiler, _recording
        from stepscope._options import Options

        options = Options.from_environment()
        sampled = bool(options.schedule)
        _recording.open_capture(os.environ["STEPSCOPE_RUN"], torch, options, tells_children=sampled)
        if sampled:
            from stepscope import _sampling

            _sampling.start(torch, options)
        else:
            _recording.want("command", options)
        if _as_torch_profiler.is_wanted():
            _as_torch_profiler.replace(torch)
    except Exception as error:
        say(f"not recording process {os.getpid()}: {error}")


class _TorchFinder:
    """Finds ``torch`` as everybody else would, and notices when it is loaded.

    Stays until then: libraries ask for the module's spec, only to know whether it is there.
    """

    def __init__(self):
        self._is_asking = False

    def find_spec(self, name, path=None, target=None):
        # Another finder may ask everybody as this one does: the question must not go round for ever.
        if name != "torch" or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = self._ask_others(name, path, target)
        finally:
            self._is_asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _NoticingLoader(spec.loader, self)
        return spec

    def _ask_others(self, name, path, target):
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        specs = (finder.find_spec(name, path, target) for finder in others)
        return next((spec for spec in specs if spec is not None), None)


class _NoticingLoader:
    """Loads as ``loader`` does, then starts to record. The loaded module never sees this class."""

    def __init__(self, loader, finder):
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        # Only now: an import that fails may be tried again.
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        start(module)
