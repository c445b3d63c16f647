"""Calls on files of a process that runs: recorded by a library that is loaded now and bound to what the process has."""

import os
import sys
import sysconfig
from pathlib import Path

from stepscope import _facts, _recorder, _recording

LIBRARY = Path(__file__).with_name("libstepscope_files.so")


def start(torch, options):
    """Record calls on files, when the options want it and ``stepscope record --io`` does not do so already."""
    ring_ns = int(options.ring * 1e9)
    if options.io and _recorder.start_files(LIBRARY, _recording.run(), _left_out(torch), ring_ns):
        for key, value in _facts.facts_of_process(torch).items():
            _recorder.set_file_fact(key, value)


def stop():
    """Record them no longer; what ``stepscope record --io`` records stays."""
    _recorder.stop_files()


def _left_out(torch):
    """The folders of Python's own library and of installed packages, whose files imports read by the thousand, and of the
    system's libraries."""
    folders = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"]
    folders += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    folders.append(os.path.dirname(os.path.dirname(torch.__file__)))
    # Under both names, where one is a link.
    return sorted(
        {name for folder in folders if folder for name in (os.path.abspath(folder), os.path.realpath(folder))}
    )
