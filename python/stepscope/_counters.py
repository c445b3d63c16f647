"""Samples the process's memory and CPU time."""

from stepscope import _recorder


def start(_torch, options):
    """Sample, when the options want it."""
    if options.counters:
        _recorder.start_counters()


def stop():
    """Sample no longer."""
    _recorder.stop_counters()
