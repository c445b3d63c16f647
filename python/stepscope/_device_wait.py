"""Waits for what devices still do; at the end of a process not for ever."""

import _thread
import queue
import threading

# In seconds.
_PATIENCE = 5

_state: dict = {"tasks": None}


def prepare():
    """Have the thread that waits at the end of the process: from Python 3.12 on none can be started by then."""
    if _state["tasks"] is None:
        tasks = queue.SimpleQueue()
        # Not by `threading`: it is no thread of the program's, and nobody waits for its end.
        _thread.start_new_thread(work, (tasks,))
        _state["tasks"] = tasks


def wait(synchronize):
    """Wait until ``synchronize`` is done."""
    # At the end of the process the main thread counts as ended. Work that hangs must not keep the process then.
    if threading.main_thread().is_alive() or _state["tasks"] is None:
        synchronize()
        return
    done = threading.Event()
    _state["tasks"].put((synchronize, done))
    done.wait(_PATIENCE)


def forget():
    """In a forked child, which has no such thread."""
    _state["tasks"] = None


def work(tasks):
    """What the thread does."""
    while True:
        synchronize, done = tasks.get()
        try:
            synchronize()
        except Exception:
            pass  # An error of the program's own work: it has been told already.
        finally:
            done.set()
