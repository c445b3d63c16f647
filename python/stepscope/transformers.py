"""Steps and phases of Hugging Face's ``Trainer``, and of the trainers of other packages that are made of it.

Under ``stepscope record`` nothing is needed. In a program that records itself:

>>> from stepscope.transformers import StepscopeCallback
>>> trainer = Trainer(..., callbacks=[StepscopeCallback(record_shapes=True)])

``TrainingArguments(report_to="stepscope")`` and ``--report_to stepscope`` do so without options, once this module is
imported.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

from transformers import Trainer, TrainerCallback

from stepscope import _recorder, _steps, dataflow
from stepscope._annotate import annotate
from stepscope._frameworks import harmless
from stepscope._own_run import OwnRun

__all__ = ["StepscopeCallback"]


class StepscopeCallback(TrainerCallback):
    """Says where the trainer's steps end: with its ``global_step``, whatever its optimizers do. Where nothing is being
    recorded, it records a run, with options as of :class:`stepscope.profiler.profile`.

    A batch of several that make a step is marked in the timeline. Evaluating and saving come after the end of a step,
    and are outside of steps.
    """

    def __init__(self, **options):
        self._run = OwnRun(options)

    @harmless
    def on_train_begin(self, args, state, control, **kwargs):
        _label_phases()
        self._run.begin()
        _steps.loop_begins(_steps.TRAINER, self, state.global_step)

    @harmless
    def on_substep_end(self, args, state, control, **kwargs):
        _steps.step_ended(_steps.TRAINER, self, micro=True)

    @harmless
    def on_step_end(self, args, state, control, **kwargs):
        _steps.step_ended(_steps.TRAINER, self)

    @harmless
    def on_save(self, args, state, control, **kwargs):
        _steps.other_ended(_steps.TRAINER, "save")

    @harmless
    def on_train_end(self, args, state, control, **kwargs):
        _steps.loop_ended(self)
        self._run.end()


class _Watching(StepscopeCallback):
    """One that records nothing by itself."""

    @harmless
    def on_train_begin(self, args, state, control, **kwargs):
        _label_phases()
        _steps.loop_begins(_steps.TRAINER, self, state.global_step)


def watch_trainers(module):
    """Have each trainer from now on call a callback of ours."""
    sys.modules[module].DEFAULT_CALLBACKS.append(_Watching)
    _label_phases()


def label_trl(module):
    """Label what TRL measures: generating, rewards, synchronizing weights."""
    context = sys.modules[module].ProfilingContext
    enter, leave = context.__enter__, context.__exit__

    @functools.wraps(enter)
    def enter_labelled(self):
        self._stepscope_label = annotate(self.name)
        self._stepscope_label.__enter__()
        return enter(self)

    @functools.wraps(leave)
    def leave_labelled(self, *error):
        try:
            return leave(self, *error)
        finally:
            self._stepscope_label.__exit__(*error)

    context.__enter__, context.__exit__ = enter_labelled, leave_labelled


#: How to label what a trainer does.
_PHASES = {
    **{name: annotate(name) for name in ("training_step", "compute_loss", "evaluate", "predict")},
    "_save_checkpoint": dataflow.checkpoint("save_checkpoint"),
}
#: The outermost method of a phase by trainer and name.
_outermost: dict[tuple[int, str], Callable] = {}


def _label_phases(trainer=Trainer):
    """Label what trainers of this class, and of those made of it, do, and hear of what ends their loops."""
    if not hasattr(Trainer.train, "__stepscope__"):
        Trainer.train = _heard(Trainer.train)
    for name in _PHASES.keys() & vars(trainer).keys():
        function = vars(trainer)[name]
        if not hasattr(function, "__stepscope__"):
            setattr(trainer, name, _labelled(name, function))
    for made_of_it in trainer.__subclasses__():
        _label_phases(made_of_it)


def _heard(train):
    @functools.wraps(train)
    def heard(self, *args, **kwargs):
        try:
            return train(self, *args, **kwargs)
        except BaseException as error:
            _failed(error)
            raise

    heard.__stepscope__ = True
    _recorder.hide(heard.__code__)
    return heard


@harmless
def _failed(error):
    _steps.loop_failed(_steps.TRAINER, error)


def _labelled(name, function):
    with_label = _PHASES[name](function)

    @functools.wraps(function)
    def labelled(self, *args, **kwargs):
        key = (id(self), name)
        # A trainer calls the method of the class that its own is made of for the same phase.
        if _outermost.setdefault(key, function) is not function:
            return function(self, *args, **kwargs)
        try:
            return with_label(self, *args, **kwargs)
        finally:
            _outermost.pop(key, None)
            if name in ("evaluate", "predict"):
                _evaluated(name)

    labelled.__stepscope__ = True
    _recorder.hide(labelled.__code__)
    return labelled


@harmless
def _evaluated(name):
    # Trainers call their callbacks within the label.
    _steps.other_ended(_steps.TRAINER, name)


def _know_name():
    """``report_to="stepscope"`` means our callback."""
    integrations = sys.modules.get("transformers.integrations.integration_utils")
    callbacks = getattr(integrations, "INTEGRATION_TO_CALLBACK", None)
    if callbacks is not None:
        callbacks.setdefault("stepscope", StepscopeCallback)


_know_name()
for method in (*vars(StepscopeCallback).values(), *vars(_Watching).values()):
    if hasattr(method, "__code__"):
        _recorder.hide(method.__code__)
