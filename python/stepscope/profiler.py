"""Record a training loop from inside the program, with the names of ``torch.profiler``.

>>> from stepscope.profiler import profile, schedule, record_function
>>> with profile(schedule=schedule(wait=1, warmup=1, active=3, repeat=2), run="runs/a") as prof:
...     for batch in loader:
...         with record_function("forward"):
...             loss = model(batch)
...         prof.step()

Read what was recorded with ``stepscope report runs/a`` or ``stepscope.open("runs/a")``. Threads and forked or spawned
workers of the program are recorded too. Operators, steps, labels and, when asked for, memory are recorded; asking for
anything else warns, and the report says so.
"""

import enum
import functools
import json
import os
import subprocess
import sys
import time
import warnings

from stepscope import _options, _recorder, _recording, _ring, _sampling, _steps

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "sampled", "schedule"]


class ProfilerAction(enum.Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(enum.Enum):
    """What to record."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """Say in which steps to record.

    After ``skip_first`` steps the profiler waits, warms up and records for ``wait``, ``warmup`` and ``active`` steps,
    again and again; ``repeat`` cycles of it, or without end for 0.

    Parameters
    ----------
    wait, warmup, active : int
        Steps of each phase; ``active`` is at least 1.
    repeat : int
        Number of cycles; 0 is without end.
    skip_first : int
        Steps before the first cycle.
    skip_first_wait : int
        When not 0, the first cycle does not wait.

    Returns
    -------
    Callable[[int], ProfilerAction]
        What to do in the step with a number.
    """
    assert wait >= 0 and warmup >= 0 and repeat >= 0 and skip_first >= 0 and active > 0, (
        "a schedule needs wait, warmup, repeat and skip_first of at least 0, and active of at least 1"
    )
    if warmup == 0:
        warnings.warn("a schedule without warmup records the cost of starting to record", stacklevel=2)

    def action(step):
        assert step >= 0
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        cycle, at = divmod(step, wait + warmup + active)
        if repeat > 0 and cycle >= repeat:
            return ProfilerAction.NONE
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        is_last = at == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

    return action


def sampled(*, every, active=5):
    """Say that a few steps are recorded now and then: a schedule without end.

    The first are steps 10 and following, when the program has warmed up, if ``every`` leaves room for that.

    Parameters
    ----------
    every, active : int
        Of each ``every`` steps ``active`` ones are recorded.

    Returns
    -------
    Callable[[int], ProfilerAction]
        What to do in the step with a number.
    """
    keywords = _sampling.sampled(every=every, active=active)

    def action(step):
        if not _sampling.is_active(keywords, step)[0]:
            return ProfilerAction.NONE
        is_last = not _sampling.is_active(keywords, step + 1)[0]
        return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

    return action


def _is_compiling():
    """True while torch.compile traces the caller: it cannot trace the recorder."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def _always(_step):
    return ProfilerAction.RECORD


class record_function:
    """Label a block of code, as a context manager or a decorator.

    Parameters
    ----------
    name : str
        The label.
    args : str, optional
        Accepted as ``torch.profiler`` does; not recorded.
    """

    def __init__(self, name, args=None):
        self.name = name
        self.args = args
        self._tokens = []

    def __enter__(self):
        if _is_compiling():
            return self
        # A stack, so that one object can be entered again inside itself.
        self._tokens.append(_recorder.begin_label(self.name) if _recording.is_on() else None)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if _is_compiling():
            return
        token = self._tokens.pop()
        if token is not None:
            _recorder.end_label(token, self.name)

    def __call__(self, function):
        @functools.wraps(function)
        def labelled(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return labelled


class profile:
    """Record this process, all its threads and the workers it starts.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        What to record; only ``CPU`` is recorded so far.
    schedule : callable, optional
        What to do in which step, as :func:`schedule` gives it; without one everything is recorded.
    on_trace_ready : callable, optional
        Called with this object after each cycle's last step, and when recording stops while it is on.
    profile_memory : bool
        Record every allocation and free.
    record_shapes, with_flops : bool
        What each operator is called with: shapes, types, strides, values. Operations are worked out from them.
    with_stack : bool
        Record the Python call stack of each operator.
    with_modules : bool
        Accepted as ``torch.profiler`` does: modules are recorded anyway.
        Not recorded so far: a warning says so.
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
        ring=None,
        slow_step=None,
        run=None,
    ):
        self.step_num = 0
        self.run = None if run is None else os.path.abspath(os.fspath(run))
        self.on_trace_ready = on_trace_ready
        self._schedule = schedule or _always
        self._has_schedule = schedule is not None
        self._action = ProfilerAction.NONE
        self._cycle = 0
        self._is_in_step = False
        self._is_started = False
        self._is_owner = False
        self._environment = {}
        # Floating-point operations are worked out from the shapes.
        self._options = _options.Options(
            shapes=bool(record_shapes or with_flops),
            memory=bool(profile_memory),
            # The stack of each operator is what the tables of torch.profiler show.
            stacks="ops" if with_stack else "",
            ring=_ring.seconds_of(ring),
            slow_step=float(slow_step or 0),
        )
        if slow_step and not ring:
            raise ValueError("slow_step needs a ring: it says when to keep what is in it")
        options = {
        }
        self._not_recorded = [name for name, is_wanted in options.items() if is_wanted]
        # By name: those of torch.profiler have other numbers from release to release.
        self._not_recorded += sorted({activity.name for activity in activities or ()} - {"CPU"})
        if self._not_recorded:
            warnings.warn(f"stepscope does not record {', '.join(self._not_recorded)} yet", stacklevel=2)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _ring.keep_on(exc_value)
        self.stop()

    def start(self):
        """Begin: step 0 runs now."""
        import torch

        if self._is_started:
            raise RuntimeError("this profiler is started already")
        recorded_run = os.environ.get("STEPSCOPE_RUN")
        self.run = recorded_run or self.run or _default_run()
        try:
            _create_run(self.run)
            # Below `stepscope record` everything is recorded anyway: then this object only marks steps and cycles.
            self._is_owner = _recording.open_capture(self.run, torch, self._options)
        except OSError as error:
            warnings.warn(f"stepscope does not record: {error}", stacklevel=2)
            return
        self._is_started = True
        if self._not_recorded:
            _recorder.set_fact("options_not_recorded", " ".join(self._not_recorded))
        if self._is_owner:
            self._set_environment()
            if self._has_schedule:
                _recorder.set_fact("schedule", "as the program's schedule says")
        self._change_action(self._schedule(self.step_num))
        self._begin_step()

    def step(self):
        """Say that a step ended and the next begins; nothing happens while the profiler is not started."""
        if not self._is_started:
            return
        self._end_step()
        next_action = self._schedule(self.step_num + 1)
        is_saved = self._action is ProfilerAction.RECORD_AND_SAVE
        self.step_num += 1
        if is_saved:
            self._finish_cycle()
        self._change_action(next_action)
        _steps.profiler_stepped(self.step_num)
        self._begin_step()

    def stop(self):
        """End: what was recorded is complete on disk."""
        if not self._is_started:
            return
        self._is_started = False
        try:
            if self._has_schedule:
                self._end_step()
            # Without one, what ran since the last step() is no whole step: left open, it counts as cut.
            self._is_in_step = False
            if self._is_recording():
                self._finish_cycle()
        finally:
            self._change_action(ProfilerAction.NONE)
            if self._is_owner:
                self._restore_environment()
                _recording.close_capture()
                _compact_in_background(self.run)

    def keep(self, because="asked"):
        """Keep what the flight recorder has now, as :func:`stepscope.keep` does; False when there is none."""
        return _ring.keep(because)

    def _is_recording(self):
        return self._action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _change_action(self, action):
        was_recording = self._is_recording()
        self._action = action
        if self._is_recording() and not was_recording:
            if self._is_owner:
                _recording.start_hook(_recording.torch())
            _recorder.set_window(True, self._cycle)
        elif was_recording and not self._is_recording():
            self._stop_window()

    def _finish_cycle(self):
        self._stop_window()
        self._action = ProfilerAction.NONE
        self._cycle += 1
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _stop_window(self):
        _recorder.set_window(False, self._cycle)
        if self._is_owner:
            _recording.stop_hook()

    def _begin_step(self):
        # Without a schedule only a first step() shows that the program marks steps at all.
        is_wanted = self._is_recording() and _recording.is_on()
        if is_wanted and (self._has_schedule or self.step_num > 0):
            _recorder.step_begin(self.step_num)
            self._is_in_step = True

    def _end_step(self):
        if self._is_in_step:
            _recorder.step_end(self.step_num)
            self._is_in_step = False

    def _set_environment(self):
        """Processes that the program spawns find their way to this run."""
        inject = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_inject")
        path = os.environ.get("PYTHONPATH")
        values = {
            "STEPSCOPE_RUN": self.run,
            _options.VARIABLE: self._options.to_environment(),
            "PYTHONPATH": inject + (os.pathsep + path if path else ""),
        }
        self._environment = {name: (os.environ.get(name), value) for name, value in values.items()}
        os.environ.update(values)

    def _restore_environment(self):
        for name, (before, ours) in self._environment.items():
            if os.environ.get(name) != ours:
                continue  # The program has changed it: it is the program's now.
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
        self._environment = {}


def _default_run():
    name = os.path.splitext(os.path.basename(sys.argv[0] or "python"))[0] or "python"
    return os.path.abspath(os.path.join("stepscope-runs", f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{name}"))


def _create_run(run):
    """Make the run folder, unless another rank has."""
    os.makedirs(run, exist_ok=True)
    manifest = os.path.join(run, "run.json")
    if os.path.exists(manifest):
        return
    text = {"format": "stepscope-run", "version": 1, "created_unix_ns": time.time_ns(), "command": []}
    beside = f"{manifest}.{os.getpid()}.new"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(text, file, indent=2)
        file.write("\n")
    os.replace(beside, manifest)


def _compact_in_background(run):
    """Turn the capture into Parquet in a process that nobody waits for, and that is nobody's child."""
    command = [sys.executable or "python3", "-m", "stepscope", "recover", run]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        # The shell ends at once, so that the program never meets a child that it did not start.
        subprocess.run(["/bin/sh", "-c", '"$@" &', "sh", *command], start_new_session=True, check=False, **quiet)
    except Exception:
        pass  # Whoever reads the run compacts it.
