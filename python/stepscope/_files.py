"""Calls on files of a process that runs: recorded by a library that is loaded now and bound to what the process has."""

from pathlib import Path

from stepscope import _facts, _recorder, _recording

LIBRARY = Path(__file__).with_name("libstepscope_files.so")


def start(torch, options):
    """Record calls on files, when the options want it and ``stepscope record --io`` does not do so already."""
    if options.io and _recorder.start_files(LIBRARY, _recording.run()):
        for key, value in _facts.facts_of_process(torch).items():
            _recorder.set_file_fact(key, value)


def stop():
    """Record them no longer; what ``stepscope record --io`` records stays."""
    _recorder.stop_files()
