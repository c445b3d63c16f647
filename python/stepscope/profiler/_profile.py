"""The profiler: what is recorded in which step."""

import functools
import warnings

from stepscope import _imports, _listeners, _recorder, _recording, _ring, _steps
from stepscope._say import say
from stepscope.profiler import _exports
from stepscope.profiler._kineto_profile import _KinetoProfile
from stepscope.profiler._schedule import always


class profile(_KinetoProfile):
    """Record this process, all its threads and the workers it starts.

    Parameters
    ----------
    activities : iterable of ProfilerActivity or dict, optional
        What to record: ``CPU``, and ``CUDA`` or ``XPU`` for what devices do; by default all that there is. A dict names the only types of a group that
        Chrome traces show.
    schedule : callable, optional
        What to do in which step, as :func:`schedule` gives it; without one everything is recorded.
    on_trace_ready : callable, optional
        Called with this object after each cycle's last step, and when recording stops while it is on.
    record_shapes, profile_memory, with_stack, with_flops, with_modules : bool
        Record what operators are called with, memory, Python calls; work out operations; modules are always recorded.
        ``with_stack="ops"`` records only the calls around operators: the same stacks, and fewer events.
    experimental_config : torch.profiler._ExperimentalConfig, optional
        Options of it that have no effect are named in a warning.
    execution_trace_observer : ExecutionTraceObserver, optional
        Started and stopped with the recording.
    acc_events : bool
        Keep the events of earlier cycles.
    use_cuda : bool, optional
        Deprecated.
    custom_trace_id_callback : callable, optional
        Gives each cycle its id.
    post_processing_timeout_s : float, optional
        How long making a list of events may take; it is cut then, with a warning in the log.
    ring : float or str, optional
        Be a flight recorder: keep only that many seconds of the past, as ``30`` or ``"30s"``; see :meth:`keep`.
    slow_step : float, optional
        With a ring: keep what is in it after a step that takes this many times the median of the steps before.
    gpu : {"auto", "native", "torch", "off"}
        By what devices are recorded. ``"native"``: by their own profiler; ``"torch"``: by a session of ``torch.profiler``
        in each cycle, which does not go with a ring; ``"auto"``: by their own profiler where a trial in another process
        has shown that it tells what happens, else as ``"torch"``.
    io : bool
        Record calls on files and page faults of mapped files, as ``stepscope record --io`` does.
    run : path, optional
        The run folder; ``stepscope-runs/<time>-<program>`` by default. Ranks of one job give the same folder.

    Attributes
    ----------
    run : str
        The run folder.
    step_num : int
        The number of the step that runs now.
    current_action : ProfilerAction
        What is done in it.
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        ring=None,
        slow_step=None,
        gpu="auto",
        io=False,
        run=None,
    ):
        from torch.profiler import ExecutionTraceObserver, ProfilerActivity

        activities = None if activities is None else list(activities)
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
        are_any = activities is None or any(isinstance(item, (ProfilerActivity, dict)) and item for item in activities)
        if not are_any and not use_cuda:
            raise AssertionError("No valid profiler activities found")
        from_environment = getattr(ExecutionTraceObserver, "build_execution_trace_obs_from_env", lambda: None)
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer or from_environment(),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            ring=ring,
            slow_step=slow_step,
            gpu=gpu,
            io=io,
            run=run,
        )
        self.schedule = schedule or always
        self.record_steps = bool(schedule)
        self._are_steps_shown = self.record_steps
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = _checked(self.schedule(0))
        self._is_started = False
        self._step_in_progress = self._step_label = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _ring.keep_on(exc_value)
        self.stop()
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self):
        """Begin: the step ``step_num``, at first 0, runs now."""
        if self._is_started:
            raise RuntimeError("this profiler is started already")
        self._is_started = True
        try:
            self._open()
            self._change_action("NONE", self.current_action.name)
        except BaseException:
            self._is_started = False
            self._close()
            raise
        self._begin_step()

    def step(self):
        """Say that a step ended and the next begins."""
        self._end_step()
        action = _checked(self.schedule(self.step_num + 1))
        before, self.current_action = self.current_action, action
        self.step_num += 1
        # Without start() too: what a schedule asks for is done.
        if self._change_action(before.name, action.name):
            self._is_started = True
        if self._is_started:
            if self._part.is_displaced():
                self._open()
            _steps.profiler_stepped(self.step_num, self._part)
            self._begin_step()

    def stop(self):
        """End: what was recorded is complete on disk. Nothing happens while the profiler does nothing."""
        if not self._is_started:
            return
        self._is_started = False
        if self.record_steps:
            self._end_step()
        # Without a schedule, what ran since the last step() is no whole step: left open, it counts as cut.
        if self._step_in_progress is not None:
            _steps.profiler_leaves_step()
            self._step_in_progress = None
        try:
            self._change_action(self.current_action.name, None)
        finally:
            self._close()
            self._step_label = None

    def _change_action(self, before, after):
        """Do what lies between two actions; False when that is nothing. Names: other releases have other objects."""
        if before == "WARMUP" and after == "NONE":
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if before == "RECORD" and after in ("NONE", "WARMUP"):
            warnings.warn(f"Incorrect schedule: RECORD followed by {after}", stacklevel=3)
        methods = _TRANSITIONS.get((before, after), ())
        for method in methods:
            getattr(self, method)()
        return bool(methods)

    def keep(self, because="asked"):
        """Keep what the flight recorder has now, as :func:`stepscope.keep` does; False when there is none."""
        return _ring.keep(because)

    def _trace_ready(self):
        if _exports.lacks_folder(self.on_trace_ready):
            # As in a tutorial of DeepSpeed's; PyTorch would write nothing, and say nothing.
            folder = f"{self.run}-traces"
            say(f"tensorboard_trace_handler was given without a folder: writing traces to {folder}")
            self.on_trace_ready = _exports.tensorboard_trace_handler(folder)
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _begin_step(self):
        # Without a schedule only a first step() shows that the program marks steps at all.
        is_wanted = self._window is not None and _recording.is_on()
        if is_wanted and (self.record_steps or self.step_num > 0):
            self._step_label = _listeners.begin(f"ProfilerStep#{self.step_num}")
            # A label of this name is a step.
            is_label_recorded = self._step_label is not None and _recorder.is_hooked()
            if not is_label_recorded and _steps.profiler_begins_step(self.step_num):
                self._step_in_progress = self.step_num

    def _end_step(self):
        if self._step_in_progress is not None:
            _steps.profiler_ends_step(self._step_in_progress)
            self._step_in_progress = None
        label, self._step_label = self._step_label, None
        if label is not None:
            _listeners.end(label)


# What is done between two actions, by their names; None is the end. What is not here needs nothing.
_START = ("prepare_trace", "start_trace")
_SAVE = ("stop_trace", "_trace_ready")
_TRANSITIONS = {
    ("NONE", "WARMUP"): ("prepare_trace",),
    ("NONE", "RECORD"): _START,
    ("NONE", "RECORD_AND_SAVE"): _START,
    ("WARMUP", "NONE"): ("start_trace", "stop_trace"),
    ("WARMUP", "RECORD"): ("start_trace",),
    ("WARMUP", "RECORD_AND_SAVE"): ("start_trace",),
    ("WARMUP", None): ("start_trace", "stop_trace"),
    ("RECORD", "NONE"): ("stop_trace",),
    ("RECORD", "WARMUP"): ("stop_trace",),
    ("RECORD", None): _SAVE,
    ("RECORD_AND_SAVE", "NONE"): _SAVE,
    ("RECORD_AND_SAVE", "WARMUP"): (*_SAVE, "prepare_trace"),
    ("RECORD_AND_SAVE", "RECORD"): (*_SAVE, *_START),
    ("RECORD_AND_SAVE", "RECORD_AND_SAVE"): (*_SAVE, *_START),
    ("RECORD_AND_SAVE", None): _SAVE,
}


def _checked(action):
    if action.name == "DEVICE_STOPPED":
        raise ValueError(
            "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be returned by a "
            "user-provided schedule"
        )
    return action


def make_traceable(kind, kind_of_torch=None):
    """Compiled code leaves profilers of a class aside, with a warning: as those of PyTorch."""
    import torch
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.torch import TorchCtxManagerClassVariable

    def nothing(builder, _):
        builder.install_guards(GuardBuilder.ID_MATCH)
        return TorchCtxManagerClassVariable(kind_of_torch or torch.profiler.profile)

    VariableBuilder._id_dispatch()[id(kind)] = nothing


_imports.when_loaded(functools.partial(make_traceable, profile))
