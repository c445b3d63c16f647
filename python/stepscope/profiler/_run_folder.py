"""The run folder that a program records itself into."""

import json
import os
import subprocess
import sys
import time

import stepscope
from stepscope import _options


def default_run():
    """A new folder's path, by time and program."""
    name = os.path.splitext(os.path.basename(sys.argv[0] or "python"))[0] or "python"
    return os.path.abspath(os.path.join("stepscope-runs", f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{name}"))


def create_run(run):
    """Make the run folder, unless another rank has."""
    os.makedirs(run, exist_ok=True)
    manifest = os.path.join(run, "run.json")
    if os.path.exists(manifest):
        return
    text = {"format": "stepscope-run", "version": 1, "created_unix_ns": time.time_ns(), "command": []}
    beside = f"{manifest}.{os.getpid()}.new"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(text, file, indent=2)
        file.write("\n")
    os.replace(beside, manifest)


# It takes only what time nobody else wants: the program goes on, and may ask for an export at once. Where the system
# shares time among sessions first, it is the session that has to wait.
_DETACHED = """{
    echo 19 > /proc/self/autogroup
    command -v nice > /dev/null && exec nice -n 19 "$@"
    exec "$@"
} &"""


def compact_in_background(run):
    """Turn the capture into Parquet in a process that nobody waits for, and that is nobody's child."""
    command = [sys.executable or "python3", "-m", "stepscope", "recover", run]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        # The shell ends at once, so that the program never meets a child that it did not start.
        subprocess.run(["/bin/sh", "-c", _DETACHED, "sh", *command], start_new_session=True, check=False, **quiet)
    except Exception:
        pass  # The run is compacted when it is read.


class Environment:
    """The variables by which processes that the program spawns find their way to this run."""

    def __init__(self, run, options):
        inject = os.path.join(os.path.dirname(os.path.abspath(stepscope.__file__)), "_inject")
        path = os.environ.get("PYTHONPATH")
        values = {
            "STEPSCOPE_RUN": run,
            _options.VARIABLE: options.to_environment(),
            "PYTHONPATH": inject + (os.pathsep + path if path else ""),
        }
        self._values = {name: (os.environ.get(name), value) for name, value in values.items()}
        os.environ.update(values)

    def restore(self):
        """Put back what was there before."""
        for name, (before, ours) in self._values.items():
            if os.environ.get(name) != ours:
                continue  # The program has changed it: it is the program's now.
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
        self._values = {}
