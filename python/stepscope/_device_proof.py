"""Whether devices' own profiler may be used here: it must have shown, in another process, that it tells what happens.

A profiler is a library that is loaded into somebody's program. What it does on a combination of GPU, driver, library and
PyTorch is found out once, by a child that may crash or hang, and kept in the user's cache folder.
``python -m stepscope._device_proof`` finds it out anew, whatever is known.
"""

import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import time
import types

from stepscope import _device_libraries

# How long a trial may take, and how long a process waits for the trial of another, in seconds.
LIMIT_S = 20
WAIT_S = LIMIT_S + 10
# How long is remembered what a combination alone does not explain: there was no room, or a machine was slow.
_REMEMBERED_S = {"untried": 300, "late": 24 * 3600}
# What a child is given of the environment. Nothing of a job of many processes, of tools, of Python or of a recording.
_VARIABLES = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
_FAMILIES = ("CUDA_", "NVIDIA_")
_NOT_GIVEN = ("CUDA_INJECTION", "CUDA_LAUNCH_BLOCKING", "CUDA_ENABLE_COREDUMP", "CUDA_COREDUMP")
_CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from stepscope import _recorder
_recorder.device_try(json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
"""
# Signals by which somebody ends a process, who need not mean the library.
_FROM_OUTSIDE = {1: "SIGHUP", 2: "SIGINT", 9: "SIGKILL", 15: "SIGTERM"}
_CRASHES = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is known of a combination."""

    state: str
    """``"proven"``; ``"refused"``: it failed, lied or crashed; ``"late"``: it hung; ``"untried"``: it could not be tried."""
    why: str = ""
    """Why it is not proven, else what was tried."""
    at: float = 0
    """When, in seconds of the system's clock."""

    @property
    def is_proven(self):
        """Whether the profiler may be used."""
        return self.state == "proven"

    def is_valid(self):
        """Whether it still says anything."""
        remembered_s = _REMEMBERED_S.get(self.state)
        return remembered_s is None or 0 <= time.time() - self.at < remembered_s


def verdict(kind, libraries, torch_version, device=0, is_anew=False):
    """What is known of devices of a ``kind`` here; when that is nothing, they are tried, by one process of all."""
    if kind != "cuda":
        return Verdict("untried", f"no way is known to prove it on a {kind} device, and it is not verified on hardware")
    combination = key(kind, libraries, torch_version)
    folder = _folder()
    path = folder and _path(folder, combination)
    if not is_anew:
        known = _read(path, combination)
        if known is not None:
            return known
    with _turn(folder) as has_turn:
        # The process that had the turn before may have found it out.
        known = None if is_anew else _read(path, combination)
        if known is None and not has_turn:
            known = Verdict("untried", f"another process did not find out within {WAIT_S} s whether it works")
        if known is None:
            known = _try(kind, libraries, device)
            _write(path, combination, known)
        return known


def key(kind, libraries, torch_version, root="/"):
    """What a verdict is about: the same in every process of this user on this machine."""
    return {
        "kind": kind,
        "gpus": sorted(set(models(root))),
        "driver": driver_version(root) or _build("/usr/lib/wsl/lib/libcuda.so.1"),
        "library": _library(libraries),
        "torch": str(torch_version),
        "stepscope": _own_build(),
    }


def models(root="/"):
    """The names of NVIDIA's devices, as the driver gives them without being used."""
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(root), "proc/driver/nvidia/gpus/*/information"))):
        name = re.search(r"^Model:\s*(.+?)\s*$", _text(path), re.MULTILINE)
        found += [name[1]] if name else []
    return found


def driver_version(root="/"):
    """The version of NVIDIA's driver; None where it says none."""
    found = re.search(r"Kernel Module.*?\s(\d+\.\d[\d.]*)", _text(os.path.join(root, "proc/driver/nvidia/version")))
    return found[1] if found else _text(os.path.join(root, "sys/module/nvidia/version")).strip() or None


def _library(libraries):
    """The library that is tried first, as a file; else what the system's loader goes by."""
    path = next((path for path in libraries if os.path.isfile(path)), None)
    return _build(path) if path else [*libraries, os.environ.get("LD_LIBRARY_PATH", "")]


def _build(path):
    """A file, so that another one in its place is told from it; None when it is not there."""
    try:
        real = os.path.realpath(path)
        facts = os.stat(real)
    except OSError:
        return None
    return [real, facts.st_size, facts.st_mtime_ns]


def _own_build():
    from stepscope import _recorder

    # Beside the version, since a developer has many builds of one.
    return _build(_recorder.__file__)


def _try(kind, libraries, device):
    """Have a child find out; it inherits nothing that it does not need."""
    from stepscope import _recorder

    # A program that has Python built in would be started again.
    if "python" not in os.path.basename(sys.executable or "").lower() or getattr(sys, "frozen", False):
        return _verdict("untried", "this program is not run by a Python that could try it")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    options = json.dumps({"kind": kind, "libraries": [os.fspath(path) for path in libraries]})
    words = [sys.executable, "-I", "-S", "-c", _CHILD, package, options, str(device), str(LIMIT_S)]
    answer, end = _recorder.run_limited(words, _environment(), LIMIT_S)
    return _judge(answer.decode(errors="replace").splitlines(), *end)


def _environment():
    """What the child is given."""
    given = {*_VARIABLES, *_device_libraries.VARIABLES.values()}
    names = (name for name in os.environ if name in given or name.startswith(_FAMILIES))
    return {name: os.environ[name] for name in names if not name.startswith(_NOT_GIVEN)}


def _judge(lines, how, number):
    """What the child's lines and its end mean."""
    told = dict(line.partition(" ")[::2] for line in lines)
    stage = told.get("at", "it was loaded")
    if how == "not started":
        return _verdict("untried", f"no process could be started to try it: {' '.join(lines)}")
    if how == "late":
        return _verdict("late", f"it did not end within {LIMIT_S} s while {stage}")
    if how == "signal" and number in _FROM_OUTSIDE:
        return _verdict("untried", f"the process that tried it was ended by {_FROM_OUTSIDE[number]} while {stage}")
    if how == "signal":
        return _verdict("refused", f"it crashed ({_CRASHES.get(number, f'signal {number}')}) while {stage}")
    if how == "unknown":
        return _verdict("untried", "how the process that tried it ended was told to somebody else")
    for state in ("refused", "untried"):
        if state in told:
            return _verdict(state, told[state])
    if number or "proven" not in told:
        return _verdict("refused", f"it ended the process (code {number}) while {stage}")
    return _verdict(
        "proven", f"{told.get('works')} pieces of work on {told.get('device')}, CUPTI {told.get('version')}"
    )


def _verdict(state, why):
    return Verdict(state, " ".join(why.split()), time.time())


def _folder():
    """Where verdicts are kept: the user's cache, or else a folder of the user's own among temporary files; None without."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.expanduser("~/.cache")
    temporary = os.path.join(tempfile.gettempdir(), f"stepscope-{os.geteuid()}")
    for folder in (os.path.join(home, "stepscope"), temporary):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            facts = os.lstat(folder)
            is_own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o022
            if is_own and os.access(folder, os.W_OK | os.X_OK):
                return folder
        except OSError:
            pass
    return None


def _path(folder, combination):
    text = json.dumps(combination, sort_keys=True).encode(errors="surrogateescape")
    return os.path.join(folder, f"device-{hashlib.sha256(text).hexdigest()[:16]}.json")


def _read(path, combination):
    """What a file says of the combination; None when it says nothing that can be relied on."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        found = Verdict(**{field.name: told[field.name] for field in dataclasses.fields(Verdict)})
        is_whole = found.state in ("proven", "refused", "late", "untried") and isinstance(found.why, str)
        if is_whole and told["combination"] == combination and found.is_valid():
            return found
    except Exception:
        pass  # It is not there, or damaged: then it is found out anew.
    return None


def _write(path, combination, found):
    """Keep it; a reader sees all of it or nothing."""
    if path is None:
        return
    beside = f"{path}.{os.getpid()}.new"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            json.dump({"combination": combination, **dataclasses.asdict(found)}, file, indent=2)
            file.write("\n")
        os.replace(beside, path)
    except (OSError, ValueError):
        # It will be found out again.
        with contextlib.suppress(OSError):
            os.unlink(beside)


@contextlib.contextmanager
def _turn(folder):
    """One process at a time finds something out; False when the others took too long. The system ends a dead one's turn."""
    if folder is None:
        yield True
        return
    try:
        file = open(os.path.join(folder, "device.lock"), "a")
    except OSError:
        yield True
        return
    with file:
        end = time.monotonic() + WAIT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    yield False
                    return
                time.sleep(0.05)
            except OSError:
                break  # A file system without locks.
        try:
            yield True
        finally:
            # Also where a process that was forked meanwhile has the file open.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def main():
    """Find it out anew, and print it."""
    from stepscope import _device_check

    torch = _device_check.torch_version()
    libraries = _device_libraries.libraries("cuda", types.SimpleNamespace(version=torch))
    found = verdict("cuda", libraries, torch.__version__, is_anew=True)
    print(json.dumps(dataclasses.asdict(found)))
    return 0 if found.is_proven else 1


if __name__ == "__main__":
    sys.exit(main())
