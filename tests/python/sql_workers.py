"""Workers of SQL that tests start: real processes, which are asked and ended."""

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import runs
from queries import PROGRAM

TOKEN = "a-token-that-only-tests-have"


def environment(token=TOKEN, **changes):
    return runs.environment(STEPSCOPE_SQL=PROGRAM, STEPSCOPE_CLUSTER_TOKEN=token, **changes)


class Worker:
    """A worker that listens at a port, of this machine alone unless it is told otherwise."""

    def __init__(self, *words, port=0, env=None, stepscope=runs.COMMAND):
        command = [
            PROGRAM,
            "worker",
            "--listen",
            f"127.0.0.1:{port}",
            "--threads",
            "2",
            "--stepscope",
            stepscope,
            *words,
        ]
        # Elsewhere than clients, as on another machine.
        self.process = subprocess.Popen(command, env=env or environment(), stdout=subprocess.PIPE, text=True, cwd="/")
        self.address = self.process.stdout.readline().removeprefix("listening at ").strip()
        assert self.address, self.process.wait()
        self.port = int(self.address.rsplit(":", 1)[1])

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()

    def cpu_seconds(self):
        """How long it has computed, with what it started."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(int(field) for field in fields[11:13]) / os.sysconf("SC_CLK_TCK")


@contextmanager
def workers(count, *words, **options):
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            worker = Worker(*words, **options)
            stack.callback(lambda worker=worker: worker.process.poll() is None and worker.end())
            started.append(worker)
        yield started


def cluster(*of):
    return ["--cluster", ",".join(worker if isinstance(worker, str) else worker.address for worker in of)]


def ask(job, query, *words, env=None):
    """The rows of a query, and what is said of it."""
    command = ["sql", job, query, "--json", "--limit", "1000000", *words]
    told = runs.run(runs.COMMAND, *command, env=env or environment())
    assert told.returncode == 0, told.stdout + told.stderr
    answer = json.loads(told.stdout)
    return [column["name"] for column in answer["columns"]], answer["rows"], told.stderr


def fails(job, query, *words, env=None):
    told = runs.run(runs.COMMAND, "sql", job, query, *words, env=env or environment())
    assert told.returncode == 1, told.stdout + told.stderr
    assert "panicked" not in told.stderr
    return told.stderr


def wait_until(is_so, seconds=60):
    """Until something is so, which it must be at last."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "this never came"
        time.sleep(0.05)


def starts_to_compute(*of):
    """Waits until workers have had work for a while."""
    before = [worker.cpu_seconds() for worker in of]
    wait_until(lambda: any(worker.cpu_seconds() > was + 0.3 for worker, was in zip(of, before, strict=True)))


def rests(*of):
    """Waits until no worker computes any more."""

    def is_resting():
        before = [worker.cpu_seconds() for worker in of]
        time.sleep(0.5)
        return all(worker.cpu_seconds() <= was + 0.02 for worker, was in zip(of, before, strict=True))

    wait_until(is_resting)
