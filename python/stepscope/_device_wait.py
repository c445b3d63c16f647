"""Waits for what devices still do; at the end of a process not for ever."""

from __future__ import annotations

import _thread
import queue
import threading

# In seconds.
_PATIENCE = 5

# Calls for the waiting thread, each with an event to set afterwards; None while there is no such thread.
_tasks: queue.SimpleQueue | None = None


def prepare():
    """Have the thread that waits at the end of the process: from Python 3.12 on none can be started by then."""
    global _tasks
    if _tasks is None:
        tasks = queue.SimpleQueue()
        # Not by `threading`: it is no thread of the program's, and nobody waits for its end.
        _thread.start_new_thread(work, (tasks,))
        _tasks = tasks


def wait(synchronize):
    """Wait until ``synchronize`` is done."""
    # At the end of the process the main thread counts as ended. Work that hangs must not keep the process then.
    if threading.main_thread().is_alive() or _tasks is None:
        synchronize()
        return
    done = threading.Event()
    _tasks.put((synchronize, done))
    done.wait(_PATIENCE)


def forget():
    """In a forked child, which has no such thread."""
    global _tasks
    _tasks = None


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
