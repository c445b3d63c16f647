"""The part that a profiler has in the recording of its process: there is one capture for all profilers.

A profiler that begins to record while nobody does opens a capture in a run of its own. Others that begin meanwhile
record into the same. A profiler that is open without recording keeps its capture until somebody else wants to record.
"""

import contextlib
import dataclasses
import os
import warnings
import weakref

from stepscope import _demand, _recorder, _recording, _steps
from stepscope._say import say
from stepscope.profiler import _run_folder


class _Opened:
    """Who opened the capture of this process, if a profiler did, and what that changed."""

    def __init__(self):
        self.part = None
        self.environment = None
        self.pid = None
        self.is_used = False
        # Runs of captures that are closed for good, and were not compacted yet.
        self.runs = []


_opened = _Opened()


class Part:
    """What a profiler wants recorded, and where. It does not know the profiler, and outlives it.

    Parameters
    ----------
    run : str, optional
        The run folder that was asked for.
    options : Options
        What to record.
    has_host : bool
        Record operators and labels, and not only what devices do.
    """

    def __init__(self, run, options, has_host):
        self.run = run
        self.is_open = False
        self._is_run_asked = run is not None
        self._own_run = run
        self._options = options
        self._has_host = has_host
        # Of the window that goes on; and whether it is switched on.
        self._cycle = None
        self._is_on = False
        self._has_warned = False
        # Where a capture of its own is complete, but more may follow.
        self._closed_run = None

    def end_with(self, profiler):
        """End when ``profiler`` is collected, whatever it was doing."""
        weakref.finalize(profiler, _demand.abandon, self._abandon).atexit = False

    def _abandon(self):
        if self._cycle is not None:
            say(
                f"a profiler was collected while it recorded: its part of {self.run} ends; keep the object until stop()"
            )
        self._end()

    def open(self):
        """Have a capture to record into. True when it may be another one than before.

        Raises
        ------
        OSError
            It cannot be made.
        """
        with _demand.alone():
            self.is_open = True
            if _opened.part is self and _recorder.is_open():
                return False
            if _recording.is_wanted() or (_recorder.is_open() and _opened.part is None):
                return self._join()
            _close()
            return self._open_own()

    def _open_own(self):
        import torch

        # A process that was started by one that is recorded belongs to that one's run.
        self._own_run = self._own_run or _run_folder.default_run()
        self.run = os.environ.get("STEPSCOPE_RUN") or self._own_run
        _run_folder.create_run(self.run)
        _recording.open_capture(self.run, torch, self._options, tells_children=True)
        _opened.part, _opened.environment = self, _run_folder.Environment(self.run, self._options)
        _opened.pid, _opened.is_used = os.getpid(), False
        return True

    def _join(self):
        import torch

        self.run = _recording.run()
        # In a forked child this opens the child's own capture.
        _recording.open_capture(self.run, torch, _recording.options(), tells_children=True)
        if _opened.part is not None:
            self._warn_of_others()
        return True

    def _warn_of_others(self):
        """Say what is not as asked, since another profiler records already."""
        asked, given, lost = self._options, _recording.options(), []
        if self._is_run_asked and self.run != self._own_run:
            lost.append(f"events go to its run {self.run}")
        if asked.ring != given.ring:
            lost.append(f"only the last {given.ring:g} s are kept" if given.ring else "there is no ring")
        if "off" not in (asked.gpu, given.gpu) and asked.gpu != given.gpu:
            lost.append(f'devices are recorded with gpu="{given.gpu}"')
        if lost and not self._has_warned:
            self._has_warned = True
            warnings.warn(f"another profiler of this process records already: {', '.join(lost)}", stacklevel=7)

    def is_displaced(self):
        """Whether the capture that it had is closed, since another profiler recorded meanwhile."""
        return self.is_open and not _recorder.is_open()

    def record(self, cycle):
        """Record from now on, into the capture of this process; gives its path."""
        with _demand.alone():
            _opened.is_used = True
            self.want_devices(True)
            _recorder.set_window(True, cycle)
            self._cycle, self._is_on = cycle, True
            _recording.tell_children(cycle)
            return _recording.capture()

    def switch_off(self):
        """Record nothing until :meth:`record` is called again, into the same capture: nobody else takes it."""
        with _demand.alone():
            self._end_window()
            _recording.want(self, dataclasses.replace(self._options, gpu="off"), has_host=False)
            _recording.tell_children(self._cycle)

    def _end_window(self):
        if self._is_on:
            self._is_on = False
            _recorder.set_window(False, self._cycle)

    def want_devices(self, are_wanted):
        """Record what devices do, if that was asked for, or not; the rest in any case."""
        options = self._options if are_wanted else dataclasses.replace(self._options, gpu="off")
        _recording.want(self, options, self._has_host)

    def pause(self):
        """Record no longer."""
        with _demand.alone():
            self._pause()
        _compact()

    def _pause(self):
        self._end_window()
        cycle, self._cycle = self._cycle, None
        if cycle is not None:
            _recording.leave(self)
            _recording.tell_children(cycle)
        # What is open for nobody any more.
        if _opened.part is not None and not _opened.part.is_open and not _recording.is_wanted():
            _close()

    def warm_up(self):
        """Make ready to record soon."""
        _recording.warm_up(self._options)

    @property
    def is_opener(self):
        """Whether the capture of this process was opened for it, and so all that is recorded there."""
        return _opened.part is self

    def close(self):
        """Neither record nor keep the capture: it ends here when nobody else records into it."""
        with _demand.alone():
            self._end()
        _compact()

    def _end(self):
        self.is_open = False
        _steps.profiler_stopped(self)
        self._pause()
        if self._closed_run is not None:
            _opened.runs.append(self._closed_run)
            self._closed_run = None


def _close():
    """Close the capture that a profiler opened, if there is one."""
    part = _opened.part
    if part is None:
        return
    _opened.environment.restore()
    _opened.part = _opened.environment = None
    capture = _recording.capture()
    _recording.close_capture()
    if _opened.pid != os.getpid():
        return  # This is a forked child: the capture is its parent's.
    if part.is_open and not _opened.is_used:
        # It goes on in another one; as often as somebody comes in between.
        with contextlib.suppress(OSError):
            os.unlink(capture)
        return
    part._closed_run = part.run
    if not part.is_open:
        part._end()


def _compact():
    """Outside of garbage collections, which must not start processes."""
    while _opened.runs:
        _run_folder.compact_in_background(_opened.runs.pop())
