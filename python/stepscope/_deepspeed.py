"""Steps and phases of DeepSpeed: by its own counter of steps, in its own words (``fwd``, ``bwd``, ``bwd_allreduce``, ``step``)."""

from __future__ import annotations

import functools
import sys

from stepscope import _deepspeed_ranges, _recorder, _recording, _steps
from stepscope._annotate import annotate
from stepscope._frameworks import harmless

#: Of several engines, as of an actor and a critic, the one whose steps count.
_primary = _steps.Primary()


def watch_engines(module):
    """Label the phases of all engines, and hear of their steps."""
    engine = sys.modules[module].DeepSpeedEngine
    _wrap(engine, "forward", _forward)
    _wrap(engine, "backward", _labelled("bwd"))
    _wrap(engine, "step", _step)
    if hasattr(engine, "_stop_timers"):
        _wrap(engine, "_stop_timers", _timers_stopped)
    # Only releases in which ``loss.backward()`` does as well have these.
    if hasattr(engine, "_backward_prologue") and hasattr(engine, "_backward_epilogue"):
        _wrap(engine, "_backward_prologue", _prologue)
        _wrap(engine, "_backward_epilogue", _epilogue)
    elif hasattr(engine, "allreduce_gradients"):
        _wrap(engine, "allreduce_gradients", _labelled("bwd_allreduce"))


def watch_pipelines(module):
    """The same for engines that run a whole batch at once, of which the others' functions are no part."""
    engine = sys.modules[module].PipelineEngine
    _wrap(engine, "train_batch", _train_batch)
    _wrap(engine, "eval_batch", _labelled("eval_batch"))
    if hasattr(engine, "_take_model_step"):
        _wrap(engine, "_take_model_step", _labelled("step"))


def _wrap(engine, name, around):
    """Put ``around(function, engine, arguments…)`` in the place of a method."""
    function = getattr(engine, name)

    @functools.wraps(function)
    def wrapped(self, *args, **kwargs):
        depth = _deepspeed_ranges.depth()
        try:
            return around(function, self, *args, **kwargs)
        finally:
            _deepspeed_ranges.close_to(depth)

    _recorder.hide(wrapped.__code__)
    _recorder.hide(around.__code__)
    setattr(engine, name, wrapped)


def _labelled(name):
    def labelled(function, engine, *args, **kwargs):
        with annotate(name):
            return function(engine, *args, **kwargs)

    return labelled


def _forward(function, engine, *args, **kwargs):
    if engine.training:
        _begin(engine)
    with annotate("fwd"):
        return function(engine, *args, **kwargs)


def _prologue(function, engine, *args, **kwargs):
    # ``loss.backward()`` in the place of ``engine.backward(loss)``.
    if not getattr(engine, "_running_engine_backward", False):
        _begin_phase(engine, "bwd")
    return function(engine, *args, **kwargs)


def _epilogue(function, engine, *args, **kwargs):
    try:
        with annotate("bwd_allreduce"):
            return function(engine, *args, **kwargs)
    finally:
        _end_phase(engine, "bwd")


def _step(function, engine, *args, **kwargs):
    with _counting(engine):
        _begin_phase(engine, "step")
        try:
            return function(engine, *args, **kwargs)
        finally:
            _end_phase(engine, "step")


def _timers_stopped(function, engine, timers):
    try:
        return function(engine, timers)
    finally:
        _end_step_with(engine, timers)


@harmless
def _end_step_with(engine, timers):
    # What follows in ``step`` is what DeepSpeed prints and logs.
    if timers is engine.engine_timers.step_timers:
        _end_phase(engine, "step")


def _begin_phase(engine, name):
    """Begin a label that another function may end."""
    _end_phase(engine, name)
    label = engine.__dict__[f"_stepscope_{name}"] = annotate(name)
    label.__enter__()


def _end_phase(engine, name):
    label = engine.__dict__.pop(f"_stepscope_{name}", None)
    if label is not None:
        label.__exit__(None, None, None)


@harmless
def _begin(engine):
    """The engine begins to train, in this capture: from here on, since what ran before belongs to no step."""
    capture = _recording.capture()
    if engine.__dict__.get("_stepscope_capture") == capture or not _recorder.is_open():
        return
    engine._stepscope_capture = capture
    if not _steps.is_marked() and _primary.is_stepped_by(engine):
        _steps.loop_begins(_steps.ENGINE, _primary)
    _watch_ranges()
    try:
        disturbing = [f"DeepSpeed's {name} {does}" for name, does in _DISTURBING.items() if _is_on(engine, name)]
    except Exception:
        disturbing = ()  # An engine that answers otherwise trains as ever.
    if disturbing:
        _recorder.set_fact("disturbed_by", "; ".join(disturbing))


def _watch_ranges():
    accelerator = sys.modules["deepspeed"].accelerator.get_accelerator()
    if hasattr(accelerator, "range_push"):
        _deepspeed_ranges.watch(accelerator)


#: Settings with which a job runs otherwise than without them.
_DISTURBING = {
    "comms_logger": "waits for the device after every collective, so that none overlaps with computing",
    "wall_clock_breakdown": "waits for the device wherever it prints times",
    "memory_breakdown": "prints memory in every phase",
    "flops_profiler": "puts hooks around all modules in its step",
}


def _is_on(engine, name):
    if name == "comms_logger":
        logger = getattr(sys.modules.get("deepspeed.comm.comm"), "comms_logger", None)
        return bool(getattr(logger, "enabled", False))
    ask = getattr(engine, "flops_profiler_enabled" if name == "flops_profiler" else name, None)
    return ask is not None and bool(ask())


def _train_batch(function, engine, *args, **kwargs):
    _begin(engine)
    with _counting(engine), annotate("train_batch"):
        return function(engine, *args, **kwargs)


class _counting:
    """A step ends where the engine's counter has grown, also when an overflow skipped the optimizer; else a part of one."""

    def __init__(self, engine):
        self._engine, self._before = engine, getattr(engine, "global_steps", None)

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        _count(self._engine, self._before, exc_value)


@harmless
def _count(engine, before, error):
    if not _primary.is_stepped_by(engine):
        return
    if error is not None:
        # It has not stepped, and may do so yet.
        _steps.step_failed(error)
    else:
        _steps.step_ended(_steps.ENGINE, _primary, micro=engine.global_steps == before)
