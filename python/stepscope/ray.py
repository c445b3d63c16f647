"""Ray Train: each worker of a job is recorded, on whatever cluster it runs, into one run.

Under ``stepscope record`` nothing is needed. Without it, ``RAY_TRAIN_CALLBACKS=stepscope.ray.StepscopeCallback`` in the
environment of the driver, or in the program:

>>> from stepscope.ray import StepscopeCallback
>>> trainer = TorchTrainer(..., run_config=RunConfig(callbacks=[StepscopeCallback(record_shapes=True)]))

Callbacks travel to other processes. Ours does with its code, so that a worker without this package trains on, unrecorded.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys

import ray.cloudpickle
from ray.train.v2._internal.execution.callback import (
    ControllerCallback,
    TrainContextCallback,
    WorkerCallback,
)

__all__ = ["StepscopeCallback"]


class StepscopeCallback(ControllerCallback, WorkerCallback, TrainContextCallback):
    """Records what each worker does, from before its process group is made until the worker ends, whatever it raised.

    The run is that of ``stepscope record``, or of a profiler object of the driver; else one of its own, with options as of
    :class:`stepscope.profiler.profile`. Reporting and checkpoints are labelled.
    """

    def __init__(self, **options):
        from stepscope import _ray_worker

        self._environment = _ray_worker.environment_of_driver()
        self._options = None if self._environment else _ray_worker.options_of_own_run(options)
        self._is_first = False

    # In the process that coordinates.

    def after_controller_start(self, train_run_context):
        with contextlib.suppress(Exception):
            from stepscope import _ray_worker

            _ray_worker.forget_controller()

    # In each worker.

    def after_init_train_context(self):
        self._is_first = bool(_try("begin", self._environment, self._options))

    def before_worker_shutdown(self):
        if self._is_first:
            _try("end")

    def on_report(self):
        return self._labelled("report")

    def on_checkpoint_sync(self):
        return self._labelled("checkpoint_sync")

    def on_checkpoint_transfer(self):
        return self._labelled("checkpoint_transfer")

    def _labelled(self, name):
        # Of several callbacks of ours in a worker, one labels.
        return (_try("label", name) if self._is_first else None) or contextlib.nullcontext()


def _try(name, *arguments):
    """Call a function of ours in a worker, which trains on where that fails."""
    try:
        from stepscope import _ray_worker

        return getattr(_ray_worker, name)(*arguments)
    except Exception as error:
        print(f"stepscope: not recording worker {os.getpid()} of Ray Train: {error}", file=sys.stderr)


def watch_trainers(module):
    """Give each trainer our callback while something records, where it has none."""
    trainer = sys.modules[module].DataParallelTrainer
    create = trainer._create_default_callbacks

    @functools.wraps(create)
    def create_callbacks(self):
        callbacks = create(self)
        is_ours = any(isinstance(callback, StepscopeCallback) for callback in callbacks)
        return callbacks if is_ours or not os.environ.get("STEPSCOPE_RUN") else [StepscopeCallback(), *callbacks]

    trainer._create_default_callbacks = create_callbacks


ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
