"""Runs, as the tests make and read them: recorded by the installed command, read back as rows of plain dicts."""

import atexit
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow.parquet

COMMAND = str(Path(sys.executable).with_name("stepscope"))
PROGRAMS = Path(__file__).with_name("programs")
FORKSERVER = Path(__file__).with_name("forkserver.py")


def put_slow_files_first(items):
    """Puts tests in files with slow ones before others: at the end, no processor waits for such a file."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def environment(**changes):
    """This environment without what would change a recording; a change of None takes a variable away."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE_")}
    variables.pop("PYTHONPATH", None)
    # Two cores and many processes: more threads in each would only wait for each other.
    variables.update({"OMP_NUM_THREADS": "1", "STEPSCOPE_PACKAGE": str(package())})
    variables.update({name: str(value) for name, value in changes.items() if value is not None})
    return {name: value for name, value in variables.items() if changes.get(name, "") is not None}


def package():
    """The folder of the installed package."""
    import stepscope

    return Path(stepscope.__file__).parent


@contextlib.contextmanager
def started(*command, timeout=600, **options):
    """A command that runs beside the test, its output in pipes.

    After ``timeout`` seconds, and where the block raises, it is killed with all that it started; its output ends then.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment(), **options}
    with subprocess.Popen([str(word) for word in command], start_new_session=True, **options) as process:
        late = threading.Timer(timeout, kill_all, [process])
        late.start()
        try:
            yield process
        except BaseException:
            kill_all(process)
            raise
        finally:
            late.cancel()


def kill_all(process):
    """Kill a process of :func:`started` with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run(*command, **options):
    """Run a command to its end, however it ends; options as of :func:`started`."""
    text = options.pop("input", None)
    if text is not None:
        options["stdin"] = subprocess.PIPE
    with started(*command, **options) as process:
        out, err = process.communicate(text)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def execute(*command, code=0, **options):
    """Run a command to its end; its exit code must be ``code``."""
    result = run(*command, **options)
    assert result.returncode == code, f"{result.args}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def stepscope(*arguments, **options):
    """Run the ``stepscope`` command."""
    return execute(COMMAND, *arguments, **options)


def program(name, *arguments):
    """The command that runs one of the tests' programs with PyTorch imported already: see ``forkserver``."""
    return forked(PROGRAMS / name, *arguments)


def script(text, *arguments):
    """The command that runs a few lines of Python with PyTorch imported already: see ``forkserver``."""
    return forked("-c", text, *arguments)


def new_program(name, *arguments):
    """The command that runs one of the tests' programs in a process of its own."""
    return [sys.executable, PROGRAMS / name, *arguments]


def new_script(text, *arguments):
    """The command that runs a few lines of Python in a process of its own."""
    return [sys.executable, "-c", text, *arguments]


def forked(*words):
    """The command that runs a program in a fork of a process that has imported PyTorch."""
    return [sys.executable, "-SE", FORKSERVER, forkserver(), *words]


@functools.cache
def forkserver():
    """The socket of this process's server of forks, which ends with it."""
    path = Path(tempfile.mkdtemp(prefix="forks")) / "socket"
    command = [sys.executable, FORKSERVER, "serve", path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment(), start_new_session=True)
    atexit.register(process.wait)
    atexit.register(process.stdin.close)
    while not path.exists():
        assert process.poll() is None, "the server has ended"
        time.sleep(0.01)
    return path


def record(run, command, **options):
    """Record a command into the folder ``run``."""
    return stepscope("record", "-o", run, "--", *command, **options)


def report(run, *arguments):
    """What ``stepscope report`` prints."""
    return stepscope("report", run, *arguments).stdout


def analyze(name, run, *arguments):
    """The envelope that an analysis prints as JSON."""
    return json.loads(stepscope("analyze", name, run, "--json", *arguments).stdout)


def counts_of_operators(run, *arguments):
    """How often each operator was called, as the command line has it."""
    return {row["name"]: row["count"] for row in analyze("operators", run, *arguments)["results"]}


def findings(run):
    """The findings of a run: their texts by code."""
    return {finding["code"]: finding for finding in json.loads(report(run, "--json"))["findings"]}


def parts(run):
    """The Parquet files of a run but for those of files; whatever is not compacted yet is, first."""
    stepscope("recover", run)
    found = sorted(Path(run).glob("rank=*/*.parquet"))
    return [part for part in found if metadata(part)["facts"].get("recorder") != "files"]


def metadata(part):
    """What a part says about its process."""
    found = json.loads(pyarrow.parquet.read_metadata(part).metadata[b"stepscope"])
    found["facts"] = dict(found["facts"])
    found["rank"] = int(part.parent.name.removeprefix("rank="))
    return found


def rows(run):
    """Every row of a run with its process's name, in order of process, thread and start; without samples of stacks, which
    are where chance has it."""
    return [row for row in _all_rows(run) if row["kind"] != "stack_sample"]


def stack_samples(run):
    """The rows that are samples of stacks."""
    return [row for row in _all_rows(run) if row["kind"] == "stack_sample"]


def _all_rows(run):
    found = []
    for part in parts(run):
        name = metadata(part)["facts"].get("process_name")
        table = pyarrow.parquet.read_table(part, partitioning=None).to_pylist()
        found += [{**row, "process_name": name} for row in table]
    return sorted(found, key=lambda row: (row["pid"], row["thread"] or 0, row["start_ns"], -row["dur_ns"]))


def ops(run):
    """The rows that are operators or labels."""
    return [row for row in rows(run) if row["kind"] in ("op", "label")]


def named(found, name):
    """The rows with a name."""
    return [row for row in found if row["name"] == name]


def with_parents(found):
    """(parent row or None, row) for each op of ``rows``: the parent is the op around it on its thread."""
    pairs, stack = [], []
    for row in found:
        while stack and not contains(stack[-1], row):
            stack.pop()
        pairs.append((stack[-1] if stack else None, row))
        stack.append(row)
    return pairs


def contains(outer, inner):
    """True when one row lies inside another on the same thread."""
    is_same_thread = (outer["pid"], outer["thread"]) == (inner["pid"], inner["thread"])
    return is_same_thread and inner["start_ns"] + inner["dur_ns"] <= outer["start_ns"] + outer["dur_ns"]
