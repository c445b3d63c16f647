"""What was recorded in a cycle, or in several, and what can be asked of it."""

import dataclasses
import logging
import os
import sys
import threading
import time

from stepscope import _recorder
from stepscope.profiler import _kept

# Where programs listen for what a profiler has to say.
_log = logging.getLogger("torch.autograd.profiler")


class _Ids:
    """Numbers of events, through all recordings of the process."""

    def __init__(self):
        self._next = 1
        self._renew_lock()
        os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self):
        self._lock = threading.RLock()

    def give(self, known, key, use):
        """Call ``use`` with the first id that ``key`` has in ``known``: a new one, if there is none, of as many as it says."""
        with self._lock:
            is_new = key not in known
            if is_new:
                first = self._next
                self._next = first + use(first)
                known[key] = first
        if not is_new:
            use(known[key])


_ids = _Ids()


@dataclasses.dataclass
class Stats:
    """How long recording and reading took."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


class Window:
    """When a thread recorded, and into which capture. Collection may pause within it."""

    def __init__(self, capture):
        self._kept = None if capture is None else _kept.keep(capture)
        self.thread = threading.get_native_id()
        self.spans = []
        self.begin_unix_ns = 0
        # Numbers of the thread's profiler state: PyTorch hands it on with what other threads do for this one.
        self._states = []
        self._since = None
        self._read = {}
        self._first_ids = {}

    def resume(self):
        """Collection is on."""
        if self._since is None:
            self._states.append(_recorder.enter_state())
            self._since = time.monotonic_ns()
            self.begin_unix_ns = self.begin_unix_ns or time.time_ns()

    def pause(self):
        """Collection is off."""
        if self._since is not None:
            self.spans.append((self._since, time.monotonic_ns()))
            self._since = None
            if self._states[-1] and self.thread == threading.get_native_id():
                _recorder.leave_state()

    @property
    def is_on(self):
        """Whether collection is on."""
        return self._since is not None

    @property
    def capture(self):
        """The file to read; ``None`` when there was no recording."""
        return None if self._kept is None else self._kept.path()

    def asked(self, are_all_threads, kinds):
        """What to ask the engine for."""
        states = [number for number in self._states if number]
        thread = (None, []) if are_all_threads else (self.thread, states)
        return self.spans, thread, kinds

    def number(self, are_all_threads, kinds, use):
        """Call ``use(first_id)``, which says how many ids operators, labels and steps have, and give that first id.

        A list of events and a trace of the same have the same ids.
        """
        # Calls of Python and what devices do have no ids of their own.
        asked = (are_all_threads, kinds[:3], len(self.spans))
        _ids.give(self._first_ids, asked, use)
        return self._first_ids[asked]

    def read(self, are_all_threads, kinds, wanted):
        """Its events, in the engine's memory, and the first ids of operators and of rows of memory."""
        from stepscope import _engine

        asked = (are_all_threads, kinds, wanted, len(self.spans))
        if asked not in self._read:
            events = _engine.read_events(self.capture, self.asked(are_all_threads, kinds), wanted)
            count, of_memory = events.ids()
            first_id = self.number(are_all_threads, kinds, lambda _: count)
            _ids.give(self._first_ids, asked, lambda _: of_memory)
            self._read = {asked: (events, (first_id, self._first_ids[asked]))}
        return self._read[asked]

    def is_read(self, are_all_threads, kinds, wanted):
        """Whether its events are in the engine's memory."""
        return (are_all_threads, kinds, wanted, len(self.spans)) in self._read

    @property
    def seconds(self):
        """How long collection was on."""
        return sum(end - start for start, end in self.spans) / 1e9


class Recorded:
    """The recording that a profiler makes: ``prof.profiler``.

    Parameters
    ----------
    kinds : tuple
        Whether operators, labels, steps and calls are shown, and what of devices.
    are_all_threads : bool
        Show all threads, and not only the one that started to record and those that ran its backward pass.
    with_stack, profile_memory, with_flops : bool
        What was asked to be recorded.
    with_overloads : bool
        Say which overload an operator is.
    is_verbose : bool
        Say in Chrome traces which functions are around each row.
    timeout_s : float, optional
        How long making a list of events may take.
    use_device : str, optional
        The kind of device whose times are asked for.
    """

    def __init__(
        self,
        *,
        kinds,
        are_all_threads,
        with_stack,
        profile_memory,
        with_flops,
        with_overloads,
        is_verbose,
        timeout_s,
        use_device=None,
    ):
        if timeout_s is not None and timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.trace_id = ""
        self.with_stack = with_stack
        self.profile_memory = profile_memory
        self.with_flops = with_flops
        self._wanted = (bool(profile_memory), bool(with_flops), with_overloads)
        self._is_verbose = is_verbose
        self._kinds = kinds
        self._are_all_threads = are_all_threads
        self._timeout_s = timeout_s
        self._asked_device = use_device
        self._windows = []
        self._lists, self._averages = {}, {}
        self._stats = Stats()

    def begin(self, capture):
        """A cycle records into a capture, if there is one, from now on; gives its window."""
        window = Window(capture)
        window.resume()
        self._lists, self._averages = {}, {}
        self._windows.append(window)
        return window

    def _complete(self):
        """Windows that are over, the last one first."""
        windows = [window for window in reversed(self._windows) if window.spans and window._since is None]
        return [window for window in windows if window.capture is not None]

    def _read(self, are_all_threads):
        if are_all_threads is None:
            are_all_threads = self._are_all_threads
        begun = time.perf_counter_ns()
        kinds = self._listed_kinds()
        read = [window.read(are_all_threads, kinds, self._wanted) for window in self._complete()]
        self._note_reading(begun, sum(len(events) for events, _ in read))
        return read

    def _listed_kinds(self):
        # Calls are listed with stacks only; traces have modules by themselves too.
        *kinds, has_calls, of_devices = self._kinds
        return (*kinds, has_calls and bool(self.with_stack), of_devices)

    def _note_reading(self, begun, count):
        taken_us = (time.perf_counter_ns() - begun) // 1000
        # Asked again, they are there already.
        self._stats.parse_kineto_call_duration_us = max(taken_us, self._stats.parse_kineto_call_duration_us)
        self._stats.number_of_events = count

    def _span_count(self):
        """Changes whenever there is more to read."""
        return sum(len(window.spans) for window in self._complete())

    @property
    def function_events(self):
        """All events, as a list."""
        return self.list_events(None)

    def list_events(self, are_all_threads):
        """All events; of all threads or not, as the profiler was told for ``None``."""
        from stepscope.profiler._columns import Columns
        from stepscope.profiler._events import FunctionEvent

        key = (are_all_threads, self._span_count())
        if key not in self._lists:
            begun = time.monotonic()
            read = self._read(are_all_threads)
            late = self._timeout_s is not None and (lambda: time.monotonic() - begun >= self._timeout_s)
            use_device = self._use_device(any(of_window.has_device_work() for of_window, _ in read))
            events = self._new_list((), use_device)
            for of_window, first_ids in read:
                columns = Columns(of_window, first_ids, os.getpid(), use_device)
                events += columns.make(FunctionEvent, late or _never)
            if len(events) < sum(len(of_window) for of_window, _ in read):
                _log.warning(
                    "listing events timed out after %.3f seconds, returning partial results with %d events",
                    self._timeout_s,
                    len(events),
                )
            taken_us = int((time.monotonic() - begun) * 1e6)
            self._stats.function_events_build_tree_call_duration_us = taken_us
            if self._complete():
                self._lists[key] = events
            return events
        return self._lists[key]

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False, all_threads=None
    ):
        """Averages of events; see ``profile.key_averages``."""
        from stepscope.profiler._averages import averages_of

        if self._timeout_s is not None:
            # What is averaged is what is listed, as far as it goes.
            listed = self.list_events(all_threads)
            return listed.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)
        by_shapes, by_overloads = bool(group_by_input_shape), bool(group_by_overload_name)
        rows = self._average_rows(all_threads, by_shapes, by_overloads, max(0, group_by_stack_n))
        use_device = self._use_device(any(is_on_device for _, _, (*_, is_on_device) in rows))
        return self._new_list(averages_of(rows, by_shapes, by_overloads, use_device), use_device)

    def _average_rows(self, are_all_threads, by_shapes, by_overloads, stack_frames):
        """The engine's rows of averages: of the events that it has in memory, or else without making any."""
        if are_all_threads is None:
            are_all_threads = self._are_all_threads
        has_memory, has_flops, _ = self._wanted
        needs_events = self.with_stack or has_memory or has_flops or by_overloads or stack_frames
        asked = (are_all_threads, self._listed_kinds(), self._wanted)
        windows = self._complete()
        if needs_events or not windows or any(window.is_read(*asked) for window in windows):
            read = [events for events, _ in self._read(are_all_threads)]
            return read[0].averages(read[1:], by_shapes, by_overloads, stack_frames) if read else []
        return self._averages_alone(windows, are_all_threads, by_shapes)

    def _averages_alone(self, windows, are_all_threads, by_shapes):
        from stepscope import _engine

        key = (are_all_threads, by_shapes, self._span_count())
        if key not in self._averages:
            begun = time.perf_counter_ns()
            kinds = self._listed_kinds()
            asked = [(window.capture, window.asked(are_all_threads, kinds)) for window in windows]
            self._averages = {**self._averages, key: _engine.read_averages(asked, by_shapes)}
            self._note_reading(begun, sum(count for _, (count, *_), _ in self._averages[key]))
        return self._averages[key]

    def _use_device(self, has_device_work):
        """The kind of device that is asked for, when the process uses one."""
        device = sys.modules.get(f"torch.{self._asked_device}")
        if has_device_work or (device is not None and getattr(device, "is_initialized", bool)()):
            return self._asked_device
        return None

    def _new_list(self, events, use_device):
        from stepscope.profiler._events import EventList

        options = {"profile_memory": self.profile_memory, "with_flops": self.with_flops}
        return EventList(events, use_device=use_device, **options)

    @property
    def kineto_results(self):
        """The last cycle, as programs ask for it that know ``torch.autograd.profiler``; ``None`` before its end."""
        from stepscope.profiler._kineto_results import KinetoResults

        windows = self._complete()
        if not windows:
            return None
        # Of several cycles the last one stands first.
        events = self.function_events
        of_last = len(windows[0].read(self._are_all_threads, self._listed_kinds(), self._wanted)[0])
        return KinetoResults(events[:of_last], windows[0].begin_unix_ns, self.export_chrome_trace)

    def total_average(self):
        """The sums of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self):
        """Sum of all self times, in microseconds."""
        return sum(events.self_ns() for events, _ in self._read(None)) / 1000

    def table(self, **options):
        """All events as a text; see ``EventList.table``."""
        return self.function_events.table(**options)

    def __str__(self):
        return self.table() if self._complete() else "<unfinished stepscope.profiler.profile>"

    def export_chrome_trace(self, path, facts=(), all_threads=None, kinds=None):
        """Write the last cycle as Chrome JSON, with ``facts`` as members of its own, and only some kinds if asked."""
        from stepscope import _engine

        window, asked = self._last_window(all_threads, kinds)
        _, _, with_overloads = self._wanted
        options = {"with_overloads": with_overloads, "verbose": self._is_verbose}

        def write(first_id):
            what = (os.fspath(path), window.capture, window.asked(*asked), list(facts))
            _, count = _engine.write_chrome(*what, first_id=first_id, **options)
            return count

        window.number(*asked, write)

    def last_window(self, all_threads=None, kinds=None):
        """The capture of the last cycle, and what to ask the engine for."""
        window, asked = self._last_window(all_threads, kinds)
        return window.capture, window.asked(*asked)

    def _last_window(self, all_threads, kinds):
        windows = self._complete()
        if not windows:
            raise AssertionError("Expected profiling results: nothing was recorded yet")
        are_all_threads = self._are_all_threads if all_threads is None else all_threads
        return windows[0], (are_all_threads, self._kinds if kinds is None else kinds)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write the stacks of all events, folded."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        from stepscope.profiler import _exports

        read = [events for events, _ in self._read(None)]
        if self._timeout_s is not None or not read:
            self.function_events.export_stacks(path, metric)
            return
        is_of_devices = not _exports.is_host_metric(metric)
        if is_of_devices and self._asked_device is None:
            # As if there were no devices.
            open(path, "w").close()
        else:
            read[0].write_stacks(os.fspath(path), read[1:], is_of_devices)


def _never():
    return False
