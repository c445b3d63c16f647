"""What is done once a framework is loaded, so that its steps and phases are recorded without a word in the program."""

import functools
import importlib
import sys

from stepscope import _imports, _recorder
from stepscope._say import say

#: The module after which it is done, and the module of ours and its function that do it.
_FRAMEWORKS = {
    "deepspeed.runtime.engine": ("_deepspeed", "watch_engines"),
    "deepspeed.runtime.pipe.engine": ("_deepspeed", "watch_pipelines"),
    "transformers.trainer": ("transformers", "watch_trainers"),
    "trl.extras.profiling": ("transformers", "label_trl"),
    "lightning.pytorch": ("lightning", "watch_trainers"),
    "pytorch_lightning": ("lightning", "watch_trainers"),
    "ray.train.v2.api.data_parallel_trainer": ("ray", "watch_trainers"),
    "vllm.v1.worker.gpu_worker": ("_vllm", "label_iterations"),
    "vllm.v1.utils": ("_vllm", "label_phases"),
    "sglang.srt.utils.nvtx_utils": ("_sglang", "label_ranges"),
}


def watch():
    """Be told, from now on, where the loops of the frameworks that the program uses are."""
    for name in _FRAMEWORKS:
        _imports.when_loaded(functools.partial(_begin, name), name)


def _begin(name):
    own, function = _FRAMEWORKS[name]

    def begin():
        try:
            getattr(importlib.import_module(module), function)(name)
        except Exception as error:
            _refuse(name.split(".")[0], error)

    module = f"stepscope.{own}"
    if module in sys.modules:
        # The program may be importing it, and the framework with it.
        _imports.when_loaded(begin, module)
    else:
        begin()


def harmless(function):
    """Decorates what a loop of a framework calls, in the module of that framework: what goes wrong in it is told, and the
    loop goes on."""
    framework = function.__module__.rpartition(".")[2].lstrip("_")

    @functools.wraps(function)
    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _refuse(framework, error)

    for each in (function, called):
        _recorder.hide(each.__code__)
    return called


#: What was told already.
_refused: set[str] = set()


def _refuse(framework, error):
    version = getattr(sys.modules.get(framework), "__version__", "of an unknown version")
    reason = f"{framework} {version}: {type(error).__name__}: {error}"
    if reason not in _refused:
        _refused.add(reason)
        say(f"not recording steps and phases of {reason}")
    _recorder.set_fact("framework_refused", reason)
