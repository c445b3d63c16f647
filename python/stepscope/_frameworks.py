"""What is done once a framework is loaded, so that its steps and phases are recorded without a word in the program."""

import functools

from stepscope import _imports


def watch():
    """Be told, from now on, where the loops of the frameworks that the program uses are."""
    _imports.when_loaded(_in_deepspeed, "deepspeed.runtime.engine")
    _imports.when_loaded(_in_deepspeed_pipelines, "deepspeed.runtime.pipe.engine")
    _imports.when_loaded(_in_transformers, "transformers.trainer")
    for package in ("lightning.pytorch", "pytorch_lightning"):
        _imports.when_loaded(functools.partial(_in_lightning, package), package)


def _in_deepspeed():
    from stepscope import _deepspeed

    _deepspeed.watch_engines()


def _in_deepspeed_pipelines():
    from stepscope import _deepspeed

    _deepspeed.watch_pipelines()


def _in_transformers():
    from stepscope import transformers

    transformers.watch_trainers()


def _in_lightning(package):
    from stepscope import lightning

    lightning.watch_trainers(package)
