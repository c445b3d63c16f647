"""Recording from a start to a stop, without steps and schedules."""

import os
import time
import uuid
import warnings

from stepscope import _demand, _options, _recorder, _recording, _ring
from stepscope.profiler import _activities, _stacks
from stepscope.profiler._metadata import Metadata
from stepscope.profiler._part import Part
from stepscope.profiler._recorded import Recorded
from stepscope.profiler._results import Results


class _KinetoProfile(Metadata, Results):
    """Records from ``start()`` to ``stop()``; :class:`profile` adds steps and schedules, and documents the parameters.

    Attributes
    ----------
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
        gpu="auto",
        io=False,
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
        self._are_numbers_wanted = False
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler = None
        self.use_device = _activities.device_of(self.activities)
        self.preset_metadata = {}
        self._experimental = _activities.experimental_values(experimental_config)
        if self._experimental.get("trace_only") and with_stack:
            warnings.warn("trace_only is left aside: with_stack needs events", stacklevel=3)
            del self._experimental["trace_only"]
        self._is_cpu_asked = ProfilerActivity.CPU in self.activities
        self._types = self.activity_filters.get(ProfilerActivity.CPU)
        has_waits = bool(self._experimental.get("enable_cuda_sync_events"))
        self._device_kinds = _activities.device_kinds(self.activities, self.activity_filters, has_waits)
        self._options = _options.Options(
            shapes=bool(record_shapes or with_flops),
            memory=bool(profile_memory),
            stacks=_stacks.recorded_for(with_stack),
            gpu=_activities.gpu_of(self.activities if is_asked else None, gpu),
            io=bool(io),
            ring=_ring.seconds_of(ring),
            slow_step=float(slow_step or 0),
        )
        if slow_step and not ring:
            raise ValueError("slow_step needs a ring: it says when to keep what is in it")
        if self._options.ring and self._options.gpu == "torch":
            raise ValueError('gpu="torch" does not go with a ring: PyTorch\'s profiler would keep everything')
        # By name: those of torch.profiler have other numbers from release to release.
        self._not_recorded = sorted({activity.name for activity in self.activities if is_asked} - _activities.RECORDED)
        self._not_recorded += _activities.experimental_not_recorded(self._experimental)
        self._devices_asked = {activity.name for activity in self.activities} & _activities.DEVICES
        self._devices_missing = _activities.devices_missing(self.activities) if is_asked else []
        for activity in self._devices_missing:
            warnings.warn(f"there is no driver for {activity} here: nothing of it is recorded", stacklevel=3)
        if self._not_recorded:
            warnings.warn(f"stepscope does not record {', '.join(self._not_recorded)} yet", stacklevel=3)
        self._trace_metadata = {}
        self._are_steps_shown = False
        self._part = Part(None if run is None else os.path.abspath(os.fspath(run)), self._options, self._is_cpu_asked)
        self._part.end_with(self)
        self._is_failed = False
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
                with_overloads=bool(self._experimental.get("capture_overload_names")),
                is_verbose=bool(self._experimental.get("verbose")),
                timeout_s=self.post_processing_timeout_s,
                use_device=self.use_device,
            )
        callback = self.custom_trace_id_callback
        if self._window is None and not self._is_failed:
            self._part.warm_up()
        self.profiler.trace_id = callback() if callback else f"{uuid.uuid4().int:032X}"
        self.profiler._stats.profiler_prepare_call_duration_us = (time.perf_counter_ns() - begun) // 1000

    def _kinds(self, types=None):
        """Whether operators, labels, steps and calls are shown, and what of devices."""
        has_ops, has_labels = (
            self._is_cpu_asked and (types is None or name in types) for name in ("CPU_OP", "USER_ANNOTATION")
        )
        has_calls = (self.with_stack or self.with_modules) and self._is_cpu_asked
        has_calls = has_calls and (types is None or "PYTHON_FUNCTION" in types)
        return has_ops, has_labels, has_labels and self._are_steps_shown, has_calls, self._device_kinds

    def start_trace(self):
        """Record from now on."""
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        begun = time.perf_counter_ns()
        # Nobody else may close between the two what the first has found open.
        with _demand.alone():
            self._open()
            self._want_numbers(bool(self.execution_trace_observer))
            if self._window is None and not self._is_failed:
                self._window = self.profiler.begin(self._part.record(self._cycle))
        self.profiler._stats.profiler_enable_call_duration_us = (time.perf_counter_ns() - begun) // 1000
        self._add_own_metadata()

    def stop_trace(self):
        """Record no longer."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self._want_numbers(False)
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self._window is None:
            return
        begun = time.perf_counter_ns()
        self._pause(self._part.pause)
        self._cycle += 1
        stats = self.profiler._stats
        stats.profiling_window_duration_sec = self._window.seconds
        stats.profiler_disable_call_duration_us = (time.perf_counter_ns() - begun) // 1000
        self._window = None

    def toggle_collection_dynamic(self, enable, activities):
        """Switch the collection of some activities off or on while recording: the CPU's, and devices'."""
        names = {activity.name for activity in activities}
        if self._window is None:
            return
        if "CPU" not in names:
            if names & _activities.DEVICES and self._window.is_on:
                self._part.want_devices(enable)
        elif not enable:
            self._pause(self._part.switch_off)
        elif not self._window.is_on:
            self._part.record(self._cycle)
            self._window.resume()

    def _want_numbers(self, are_wanted):
        """Record the numbers that ranges have in execution traces, or no longer."""
        if are_wanted != self._are_numbers_wanted:
            self._are_numbers_wanted = are_wanted
            _recorder.want_numbers(are_wanted)

    def _pause(self, end):
        if self._options.gpu != "off":
            _recording.settle_devices()
        self._window.pause()
        end()

    def _open(self):
        """Have a capture of this process to record into."""
        if self._is_failed:
            return
        if (
            not self._is_cpu_asked
            and self._devices_asked <= set(self._devices_missing)
            and not _recording.uses_devices()
        ):
            raise AssertionError("No activities specified for the profiler")
        try:
            is_new = self._part.open()
        except OSError as error:
            self._is_failed = True
            warnings.warn(f"stepscope does not record: {error}", stacklevel=4)
            return
        if is_new:
            self._say_what_is_recorded()

    def _say_what_is_recorded(self):
        if self._not_recorded:
            _recorder.set_fact("options_not_recorded", " ".join(self._not_recorded))
        if self._devices_missing and self._part.is_opener:
            missing = " and ".join(self._devices_missing)
            _recorder.set_fact("device_refused", f"there is no driver for {missing} here")
        self._note(self._trace_metadata)
        if self._are_steps_shown and self._part.is_opener:
            _recorder.set_fact("schedule", "as the program's schedule says")

    def _close(self):
        self._is_failed = False
        if self._part.is_open:
            self._part.close()

    @property
    def run(self):
        """The run folder; of a profiler that another one records with, that one's."""
        return self._part.run
