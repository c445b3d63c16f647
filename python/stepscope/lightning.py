"""Steps and phases of Lightning's ``Trainer``, of ``lightning`` and of ``pytorch_lightning``.

Under ``stepscope record`` nothing is needed. In a program that records itself:

>>> from stepscope.lightning import StepscopeProfiler
>>> trainer = Trainer(..., profiler=StepscopeProfiler(record_shapes=True))

By Lightning's command line it is ``--trainer.profiler=stepscope.lightning.StepscopeProfiler``.
"""

from __future__ import annotations

import collections
import functools
import importlib.util
import sys

from stepscope import _recorder, _steps, dataflow
from stepscope._annotate import annotate
from stepscope._frameworks import harmless
from stepscope._own_run import OwnRun

__all__ = ["StepscopeCallback", "StepscopeProfiler"]

#: The packages that Lightning comes in; both may be loaded.
PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _bases(name):
    """A class of each package that is loaded; of the first one that there is, where none is."""
    loaded = [package for package in PACKAGES if package in sys.modules]
    if not loaded:
        loaded = [next(package for package in PACKAGES if importlib.util.find_spec(package.split(".")[0]))]
    return [getattr(importlib.import_module(package), name) for package in loaded]


class StepscopeCallback(*_bases("Callback")):  # type: ignore[misc]
    """Says where the trainer's steps end: with its ``global_step``, whatever its optimizers do.

    A batch that makes no step is marked in the timeline. Validating and saving come after the end of a step, and are
    outside of steps.
    """

    @harmless
    def on_train_start(self, trainer, pl_module):
        self._step = trainer.global_step
        _steps.loop_begins(_steps.TRAINER, self, trainer.global_step)

    @harmless
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        before, self._step = self._step, trainer.global_step
        _steps.step_ended(_steps.TRAINER, self, micro=self._step == before)

    @harmless
    def on_validation_end(self, trainer, pl_module):
        _steps.other_ended(_steps.TRAINER, "validation")

    @harmless
    def on_train_end(self, trainer, pl_module):
        _steps.loop_ended(self)

    @harmless
    def on_exception(self, trainer, pl_module, exception):
        _steps.loop_failed(_steps.TRAINER, exception)


class StepscopeProfiler(*(profilers.Profiler for profilers in _bases("profilers"))):  # type: ignore[misc]
    """Labels what the trainer does, in Lightning's words, and records a run where none is being recorded.

    Parameters
    ----------
    run : str, optional
        The run folder, as for :class:`stepscope.profiler.profile`.
    record_shapes, profile_memory, with_stack, with_flops, with_modules, io : bool
        What to record, as for :class:`stepscope.profiler.profile`.
    """

    def __init__(
        self,
        run: str | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        io: bool = False,
    ) -> None:
        super().__init__()
        options = {
            "run": run,
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
            "io": io,
        }
        self._run = OwnRun(options)
        self._labels: dict[str, list] = collections.defaultdict(list)

    @harmless
    def setup(self, stage, local_rank=None, log_dir=None):
        super().setup(stage, local_rank, log_dir)
        self._run.begin()

    @harmless
    def start(self, action_name):
        if _recorder.are_labels_wanted():
            label = annotate(action_name)
            label.__enter__()
            self._labels[action_name].append(label)

    @harmless
    def stop(self, action_name):
        labels = self._labels.get(action_name)
        if labels:
            labels.pop().__exit__(None, None, None)

    @harmless
    def teardown(self, stage):
        super().teardown(stage)
        # Also called of an object that was never made whole.
        if "_run" in vars(self):
            self._run.end()


def watch_trainers(package):
    """Give each trainer of a package our callback, and, while something records, our profiler where it has none."""
    trainer = importlib.import_module(f"{package}.trainer.trainer").Trainer
    if hasattr(trainer.__init__, "__stepscope__"):
        return
    nothing = importlib.import_module(f"{package}.profilers").PassThroughProfiler
    init = trainer.__init__

    @functools.wraps(init)
    def init_and_watch(self, *args, **kwargs):
        init(self, *args, **kwargs)
        # Before those that save.
        self.callbacks.insert(0, StepscopeCallback())
        if _recorder.is_open() and type(self.profiler) is nothing:
            self.profiler = StepscopeProfiler()

    init_and_watch.__stepscope__ = True
    trainer.__init__ = init_and_watch
    trainer.save_checkpoint = _then_marked(dataflow.checkpoint("Trainer.save_checkpoint")(trainer.save_checkpoint))


def _then_marked(save):
    @functools.wraps(save)
    def save_checkpoint(self, *args, **kwargs):
        save(self, *args, **kwargs)
        _saved()

    return save_checkpoint


@harmless
def _saved():
    _steps.other_ended(_steps.TRAINER, "save")


def _hide(*classes):
    for each in classes:
        for method in vars(each).values():
            if hasattr(method, "__code__"):
                _recorder.hide(method.__code__)


_hide(StepscopeCallback, StepscopeProfiler)
for loaded in filter(sys.modules.__contains__, PACKAGES):
    watch_trainers(loaded)
