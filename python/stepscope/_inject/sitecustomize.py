"""Runs at the start of every Python process below ``stepscope record``, before the program itself.

Makes this copy of the stepscope package importable without touching ``sys.path``, asks it to record once PyTorch is
imported, and hands over to the environment's own ``sitecustomize``, if there is one.
"""


def _start_recording():
    import os
    import sys

    # A launcher may pass on the path to this file without the run: then nothing is imported that Python has not yet.
    if not os.environ.get("STEPSCOPE_RUN"):
        return
    import importlib.util

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if "stepscope" not in sys.modules:
        init = os.path.join(package, "__init__.py")
        spec = importlib.util.spec_from_file_location("stepscope", init, submodule_search_locations=[package])
        module = importlib.util.module_from_spec(spec)
        sys.modules["stepscope"] = module
        spec.loader.exec_module(module)
    from stepscope import _autostart

    _autostart.record_when_torch_is_imported()


def _run_next_sitecustomize():
    import os
    import sys

    # Those of importlib, whose import takes longer than all else here.
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    _start_recording()
except Exception as error:  # The program runs on, whatever happens here.
    import sys

    print(f"stepscope: not recording this process: {error}", file=sys.stderr)

_run_next_sitecustomize()
