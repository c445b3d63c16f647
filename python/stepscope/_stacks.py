"""Records Python's calls: around each operator, or every one of them."""

import dataclasses
import gc
import os
import site
import sys
import sysconfig

from stepscope import _recorder
from stepscope._say import say


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """Whether calls are recorded."""

    is_on: bool = False
    """Calls are recorded now."""
    is_refusal_printed: bool = False
    """A reason why calls are not recorded was printed."""


_state = _State()


def start(torch, options):
    """Follow the calls of all threads, when the options want it."""
    if not options.stacks or _state.is_on:
        return
    prefixes = path_prefixes(torch)
    was_enabled = gc.isenabled()
    # Nothing may run between the look at the threads' frames and the moment at which their calls are followed.
    gc.disable()
    try:
        left_out = _recorder.start_stacks(options.stacks == "calls", prefixes, sys._current_frames())
    except RuntimeError as refusal:
        _refuse(f"Python's calls are not recorded: {refusal}")
        return
    finally:
        if was_enabled:
            gc.enable()
    _state.is_on = True
    if left_out:
        _refuse(f"Python's calls of {left_out} thread(s) are not recorded: another profiler follows them")


def stop():
    """Follow calls no longer."""
    if _state.is_on:
        _state.is_on = False
        _recorder.stop_stacks()


def _refuse(reason):
    _recorder.set_fact("stacks_refused", reason)
    if not _state.is_refusal_printed:
        _state.is_refusal_printed = True
        say(reason)


def path_prefixes(torch=None):
    """Folders that files are shown without, the longest of those that lie in each other first."""
    return _with_separators([*_library_folders(torch), *sys.path, site.getuserbase()])


def library_prefixes(torch=None):
    """Those of them that hold Python's own modules, and packages that are installed."""
    return _with_separators(_library_folders(torch))


def _library_folders(torch):
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    if torch is not None:
        folders.append(os.path.dirname(os.path.dirname(torch.__file__)))
    return folders


def _with_separators(folders):
    absolute = {os.path.abspath(folder) for folder in folders if isinstance(folder, str) and _is_text(folder)}
    return [folder.rstrip(os.sep) + os.sep for folder in sorted(absolute, reverse=True)]


def _is_text(path):
    """False for a path that is not UTF-8: Python writes its bytes as halves of characters, which the recorder cannot take."""
    return not any("\ud800" <= character <= "\udfff" for character in path)
