"""Device rows from a session of ``torch.profiler``: for devices that Stepscope does not listen to itself.

PyTorch ties a session to a thread. So that the job's threads keep theirs, it lives on one of its own. What it tells
goes to a file beside the capture, which readers of the run merge by clock.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import threading
import time

from stepscope import _recorder
from stepscope._say import say

# How long the job waits for PyTorch to begin or end, and the end of a process for the file, in seconds.
_PATIENCE = 30


class _Session:
    """What the thread has: the profiler object and what the file is to be called."""

    profiler = None
    device_type = 1
    clocks: tuple = ()


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """The thread that sessions live on, and how far the present one is."""

    thread: threading.Thread | None = None
    """The thread that sessions live on; None before the first session."""
    tasks: queue.SimpleQueue | None = None
    """Functions for the thread to call, each with an event to set afterwards."""
    session: _Session | None = None
    """The present session, or the last one."""
    next_number: int = 0
    """The number of the next file."""
    is_prepared: bool = False
    """A session has been prepared and has not ended."""


_state = _State()


def prepare(torch, kind, options):
    """Have PyTorch make ready to listen to devices.

    Raises
    ------
    RuntimeError
        It cannot be done.
    """
    if options.ring:
        raise RuntimeError("--gpu=torch does not go with a ring: PyTorch's profiler would keep everything")
    activity = getattr(torch.profiler.ProfilerActivity, "XPU" if kind == "xpu" else "CUDA", None)
    if activity is None or activity not in torch.profiler.supported_activities():
        raise RuntimeError(f"--gpu=torch: this PyTorch's profiler knows no {kind} devices")
    if _state.thread is None:
        session = _Session()
        _state.tasks = queue.SimpleQueue()
        _state.thread = threading.Thread(target=_work, args=(_state.tasks,), name="stepscope gpu", daemon=True)
        _state.session = session
        _state.thread.start()
    session = _state.session
    _state.is_prepared = True
    # As PyTorch numbers them; AMD's are its ``cuda``.
    session.device_type = 12 if kind == "xpu" else 1
    _ask(lambda: _prepare(session, torch, activity))


def begin():
    """Listen from now on."""
    session = _state.session
    if _state.is_prepared:
        _wait_for(_ask(lambda: _begin(session)))


def end():
    """Listen no longer, and write what was heard; the file is complete when this returns, unless it takes long."""
    if not _state.is_prepared:
        return
    _state.is_prepared = False
    session, number = _state.session, _state.next_number
    _state.next_number += 1
    path = _path(number)
    if not _wait_for(_ask(lambda: _end(session, path))):
        say(f"PyTorch's profiler did not write in {_PATIENCE} s what it heard of the GPU")


def is_own_thread():
    """True on the thread that the session lives on."""
    return _state.thread is not None and threading.current_thread() is _state.thread


def forget():
    """In a forked child, which has none of this."""
    global _state
    _state = _State()


def _path(number):
    """The file of a session: named as the capture, but by this process, which may be forked from the one that opened it."""
    from stepscope import _recording

    capture = _recording.capture()
    run = os.path.dirname(os.path.dirname(capture))
    _, _, began = os.path.splitext(os.path.basename(capture))[0].partition("-")
    return os.path.join(run, "device", f"{os.getpid()}-{began}-{number}.json.gz")


def _prepare(session, torch, activity):
    # Not `profile`: its objects make steps, which are the program's.
    profiler = torch.profiler.profiler._KinetoProfile(activities=[activity], experimental_config=_config(torch))
    profiler.prepare_trace()
    session.profiler = profiler


def _config(torch):
    """Waits are only told when they are asked for, which not every release can be."""
    try:
        return torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    except TypeError:
        return None


def _begin(session):
    if session.profiler is None:
        return  # It could not be prepared, and that has been said.
    session.clocks = (time.monotonic_ns(), time.time_ns())
    session.profiler.start_trace()


def _end(session, path):
    profiler, session.profiler = session.profiler, None
    if profiler is None:
        return
    if not session.clocks:
        profiler.start_trace()  # Only warmed up: what was prepared can be left in no other way.
    profiler.stop_trace()
    clocks, session.clocks = session.clocks, ()
    if not clocks:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # The ending says how it is packed.
    beside = f"{path[: -len('.json.gz')]}.new.json.gz"
    profiler.export_chrome_trace(beside)
    os.replace(beside, path)
    fact = {"file": os.path.join("device", os.path.basename(path)), "monotonic_ns": clocks[0], "unix_ns": clocks[1]}
    fact["device_type"] = session.device_type
    number = path[: -len(".json.gz")].rpartition("-")[2]
    # A forked child that has it too would add the same to its own capture.
    _recorder.set_own_fact(f"device_trace.{number}", json.dumps(fact))


def _ask(task):
    """Have the thread do something; gives what is set when it is done."""
    done = threading.Event()
    _state.tasks.put((task, done))
    return done


def _wait_for(done):
    return done.wait(_PATIENCE)


def _work(tasks):
    while True:
        task, done = tasks.get()
        try:
            task()
        except Exception as error:
            reason = " ".join(str(error).split())
            _recorder.set_fact("device_refused", f"--gpu=torch: {reason}")
            say(f"not recording the GPU of process {os.getpid()}: {reason}")
        finally:
            done.set()
