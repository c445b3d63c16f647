"""The profiler: what is recorded when, and what is asked of it afterwards."""

import json
import os
import time
import uuid
import warnings

from stepscope import _options, _recorder, _recording, _ring, _steps
from stepscope.profiler import _activities, _distributed, _run_folder
from stepscope.profiler._recorded import Recorded
from stepscope.profiler._schedule import always


class _KinetoProfile:
    """Records from ``start()`` to ``stop()``; :class:`profile` adds steps and schedules, and documents the parameters.

    Attributes
    ----------
    run : str
        The run folder.
    profiler : Recorded or None
        What was recorded; a new one each cycle.
    """

    def __init__(
        self,
        *,
        activities=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        ring=None,
        slow_step=None,
        run=None,
    ):
        from torch.profiler import ProfilerActivity, supported_activities

        is_asked = activities is not None
        parsed = _activities.parse_activities(activities) if is_asked else (supported_activities(), {})
        self.activities, self.activity_filters = parsed
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler = None
        self.use_device = None
        self.preset_metadata = {}
        self.run = None if run is None else os.path.abspath(os.fspath(run))
        self._experimental = _activities.experimental_values(experimental_config)
        if self._experimental.get("trace_only") and with_stack:
            warnings.warn("trace_only is left aside: with_stack needs events", stacklevel=3)
            del self._experimental["trace_only"]
        self._is_cpu_asked = ProfilerActivity.CPU in self.activities
        self._types = self.activity_filters.get(ProfilerActivity.CPU)
        self._options = _options.Options(
            shapes=bool(record_shapes or with_flops),
            memory=bool(profile_memory),
            stacks="ops" if with_stack else "",
            ring=_ring.seconds_of(ring),
            slow_step=float(slow_step or 0),
        )
        if slow_step and not ring:
            raise ValueError("slow_step needs a ring: it says when to keep what is in it")
        # By name: those of torch.profiler have other numbers from release to release.
        self._not_recorded = sorted({activity.name for activity in self.activities if is_asked} - {"CPU"})
        self._not_recorded += _activities.experimental_not_recorded(self._experimental)
        if self._not_recorded:
            warnings.warn(f"stepscope does not record {', '.join(self._not_recorded)} yet", stacklevel=3)
        self._trace_metadata = {}
        self._are_steps_shown = False
        self._is_open = False
        self._is_owner = False
        self._is_failed = False
        self._environment = None
        self._window = None
        self._cycle = 0

    def start(self):
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self):
        """End: what was recorded is complete on disk."""
        try:
            self.stop_trace()
        finally:
            self._close()

    def prepare_trace(self):
        """Make ready to record: a new cycle, with an id of its own."""
        begun = time.perf_counter_ns()
        self._open()
        if self.profiler is None or not self.acc_events:
            self.profiler = Recorded(
                kinds=self._kinds(),
                are_all_threads=bool(self._experimental.get("profile_all_threads")),
                with_stack=self.with_stack,
                profile_memory=self.profile_memory,
                with_flops=self.with_flops,
                timeout_s=self.post_processing_timeout_s,
            )
        callback = self.custom_trace_id_callback
        self.profiler.trace_id = callback() if callback else f"{uuid.uuid4().int:032X}"
        self.profiler._stats.profiler_prepare_call_duration_us = (time.perf_counter_ns() - begun) // 1000

    def _kinds(self, types=None):
        """Whether operators, labels, steps and calls are shown."""
        has_ops, has_labels = (
            self._is_cpu_asked and (types is None or name in types) for name in ("CPU_OP", "USER_ANNOTATION")
        )
        has_calls = (self.with_stack or self.with_modules) and self._is_cpu_asked
        has_calls = has_calls and (types is None or "PYTHON_FUNCTION" in types)
        return has_ops, has_labels, has_labels and self._are_steps_shown, has_calls

    def start_trace(self):
        """Record from now on."""
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        begun = time.perf_counter_ns()
        if self._window is None and not self._is_failed:
            self._set_collection(True)
            self._window = self.profiler.begin(_recording.capture())
        self.profiler._stats.profiler_enable_call_duration_us = (time.perf_counter_ns() - begun) // 1000
        self._add_own_metadata()

    def stop_trace(self):
        """Record no longer."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self._window is None:
            return
        begun = time.perf_counter_ns()
        self._window.pause()
        self._set_collection(False)
        self._cycle += 1
        stats = self.profiler._stats
        stats.profiling_window_duration_sec = self._window.seconds
        stats.profiler_disable_call_duration_us = (time.perf_counter_ns() - begun) // 1000
        self._window = None

    def toggle_collection_dynamic(self, enable, activities):
        """Switch the collection of some activities off or on while recording; only that of the CPU can be."""
        if self._window is None or "CPU" not in {activity.name for activity in activities}:
            return
        if enable:
            self._set_collection(True)
            self._window.resume()
        else:
            self._window.pause()
            self._set_collection(False)

    def _set_collection(self, is_on):
        """Switch this process's recording, if it is ours to switch, and note the moment in the run."""
        if is_on and self._is_owner and self._is_cpu_asked:
            _recording.start_hook(_recording.torch())
        _recorder.set_window(is_on, self._cycle)
        if not is_on and self._is_owner:
            _recording.stop_hook()

    def _open(self):
        """Open the run and this process's capture, once."""
        import torch

        if self._is_open or self._is_failed:
            return
        recorded_run = os.environ.get("STEPSCOPE_RUN")
        self.run = recorded_run or self.run or _run_folder.default_run()
        try:
            _run_folder.create_run(self.run)
            # Below `stepscope record` everything is recorded anyway: then this object only marks steps and cycles.
            self._is_owner = _recording.open_capture(self.run, torch, self._options)
        except OSError as error:
            self._is_failed = True
            warnings.warn(f"stepscope does not record: {error}", stacklevel=4)
            return
        self._is_open = True
        if self._not_recorded:
            _recorder.set_fact("options_not_recorded", " ".join(self._not_recorded))
        self._note(self._trace_metadata)
        if self._is_owner:
            self._environment = _run_folder.Environment(self.run, self._options)
            if self._are_steps_shown:
                _recorder.set_fact("schedule", "as the program's schedule says")

    def _close(self):
        self._is_failed = False
        if not self._is_open:
            return
        self._is_open = False
        if self._is_owner:
            self._environment.restore()
            _recording.close_capture()
            _run_folder.compact_in_background(self.run)

    def add_metadata(self, key, value):
        """Add a text to the trace, and to the run."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key, value):
        """Add a value, given as JSON, to the trace, and to the run."""
        self._trace_metadata[key] = value
        if self._is_open:
            self._note({key: value})

    @staticmethod
    def _note(metadata):
        """Let the run know of metadata."""
        for fact, value in _distributed.facts_of(metadata):
            _recorder.set_fact(fact, value)

    def preset_metadata_json(self, key, value):
        """The same before recording begins: it is added when it does."""
        self.preset_metadata[key] = value

    def _add_own_metadata(self):
        for name in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, name):
                self.add_metadata_json(name, "1")
        self.add_metadata_json("trace_id", json.dumps(self.profiler.trace_id))
        distributed = _distributed.distributed_info()
        if distributed:
            self.add_metadata_json("distributedInfo", json.dumps(distributed))
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def set_custom_trace_id_callback(self, callback):
        """Let ``callback()`` give the id of each cycle that begins from now on."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        """The id of the cycle that began last; ``None`` before the first."""
        return None if self.profiler is None else self.profiler.trace_id

    def _recorded(self, purpose):
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False, *, all_threads=None
    ):
        """The events of the last cycle, those of one name together.

        Parameters
        ----------
        group_by_input_shape : bool
            Tell apart by the shapes of inputs; needs ``record_shapes``.
        group_by_stack_n : int
            Tell apart by that many of the innermost frames; needs ``with_stack``.
        group_by_overload_name : bool
            Tell overloads apart.
        all_threads : bool, optional
            Those of all threads, and not only of the one that started to record and its backward pass.

        Returns
        -------
        EventList
            One ``FunctionEventAvg`` a group; ``.table()`` is its text.
        """
        recorded = self._recorded("getting key averages")
        self._check_has_events()
        return recorded.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name, all_threads)

    def events(self, *, all_threads=None):
        """The events of the last cycle, or of all of them with ``acc_events``, as an ``EventList``."""
        recorded = self._recorded("accessing events")
        self._check_has_events()
        return recorded.list_events(all_threads)

    def _check_has_events(self):
        if self._experimental.get("trace_only"):
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. "
                "Use export_chrome_trace() instead."
            )

    def export_chrome_trace(self, path, use_python_export=False, *, all_threads=None):
        """Write the last cycle as Chrome JSON, packed when ``path`` ends in ``.gz``; as often as you like.

        ``use_python_export`` changes nothing here.
        """
        recorded = self._recorded("exporting chrome trace")
        facts = _distributed.facts_of(self._trace_metadata)
        recorded.export_chrome_trace(path, facts, all_threads, self._kinds(self._types))

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write the stacks of the last cycle in the folded form that draws flame graphs; needs ``with_stack``."""
        return self._recorded("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Write memory in use over time; needs ``record_shapes``, ``profile_memory`` and ``with_stack``."""
        required = ("record_shapes", "profile_memory", "with_stack")
        missing = [f"{name}=True" for name in required if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        from stepscope.profiler import _memory_timeline

        _memory_timeline.write(self._recorded("exporting memory"), os.fspath(path), device or "cpu")

    def _stats(self):
        return None if self.profiler is None else self.profiler._stats


class profile(_KinetoProfile):
    """Record this process, all its threads and the workers it starts.

    Parameters
    ----------
    activities : iterable of ProfilerActivity or dict, optional
        What to record; only ``CPU`` is recorded so far. A dict names the only types of a group that
        Chrome traces show.
    schedule : callable, optional
        What to do in which step, as :func:`schedule` gives it; without one everything is recorded.
    on_trace_ready : callable, optional
        Called with this object after each cycle's last step, and when recording stops while it is on.
    record_shapes, profile_memory, with_stack, with_flops, with_modules : bool
        Record what operators are called with, memory, Python calls; work out operations; modules are always recorded.
    experimental_config : torch.profiler._ExperimentalConfig, optional
        What of it has no effect is named in a warning.
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
        run=None,
    ):
        from torch.profiler import ExecutionTraceObserver

        activities = None if activities is None else list(activities)
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2
            )
        if activities is not None and not activities and not use_cuda:
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
            run=run,
        )
        self.schedule = schedule or always
        self.record_steps = bool(schedule)
        self._are_steps_shown = self.record_steps
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = _checked(self.schedule(0))
        self._is_started = False
        self._step_in_progress = None

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
        # Before start(), as after stop(), steps are only counted.
        if self._is_started:
            self._change_action(before.name, action.name)
            _steps.profiler_stepped(self.step_num)
            self._begin_step()

    def stop(self):
        """End: what was recorded is complete on disk. Nothing happens while the profiler is not started."""
        if not self._is_started:
            return
        self._is_started = False
        if self.record_steps:
            self._end_step()
        # Without a schedule, what ran since the last step() is no whole step: left open, it counts as cut.
        self._step_in_progress = None
        try:
            self._change_action(self.current_action.name, None)
        finally:
            self._close()

    def _change_action(self, before, after):
        """Do what lies between two actions; names, since those of other releases of PyTorch are other objects."""
        if before == "WARMUP" and after == "NONE":
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if before == "RECORD" and after in ("NONE", "WARMUP"):
            warnings.warn(f"Incorrect schedule: RECORD followed by {after}", stacklevel=3)
        for method in _TRANSITIONS.get((before, after), ()):
            getattr(self, method)()

    def keep(self, because="asked"):
        """Keep what the flight recorder has now, as :func:`stepscope.keep` does; False when there is none."""
        return _ring.keep(because)

    def _trace_ready(self):
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _begin_step(self):
        # Without a schedule only a first step() shows that the program marks steps at all.
        is_wanted = self._window is not None and _recording.is_on()
        if is_wanted and (self.record_steps or self.step_num > 0):
            _recorder.step_begin(self.step_num)
            self._step_in_progress = self.step_num

    def _end_step(self):
        if self._step_in_progress is not None:
            _recorder.step_end(self._step_in_progress)
            self._step_in_progress = None


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
