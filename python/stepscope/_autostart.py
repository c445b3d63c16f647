"""Records a process that ``stepscope record`` started, from the moment it has imported PyTorch."""

import os
import sys


def record_when_torch_is_imported():
    """Record now when PyTorch is imported already, else as soon as it is."""
    if "torch" in sys.modules:
        start(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, _TorchFinder())


def start(torch):
    """Open this process's capture and hook PyTorch; on trouble print one line and leave the program alone."""
    from stepscope import _recording

    try:
        _recording.open_capture(os.environ["STEPSCOPE_RUN"], torch)
        _recording.start_hook(torch)
    except Exception as error:
        print(f"stepscope: not recording process {os.getpid()}: {error}", file=sys.stderr)


class _TorchFinder:
    """Finds ``torch`` as everybody else would, and notices when it is loaded.

    Stays until then: libraries ask for the module's spec, only to know whether it is there.
    """

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            spec = find_spec(name, path, target) if find_spec and finder is not self else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _NoticingLoader(spec.loader, self)
                return spec
        return None


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
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._loader.exec_module(module)
        start(module)
