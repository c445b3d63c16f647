"""Samples the process's memory and CPU time, and what the machine does beside it."""

import multiprocessing
import os

from stepscope import _recorder


def start(_torch, options):
    """Sample, when the options want it."""
    if options.counters:
        _recorder.start_counters(_is_first_of_host())


def stop():
    """Sample no longer."""
    _recorder.stop_counters()


def _is_first_of_host():
    """Whether the process is the one that samples the machine: of the ranks of a host the first, and no worker."""
    is_worker = multiprocessing.parent_process() is not None
    return not is_worker and _recorder.launcher_facts(os.environ.get).get("local_rank", 0) == 0
