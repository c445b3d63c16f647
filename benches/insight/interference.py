"""Faults of the cores that the host gives to the job."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import torch

from .models import perceptron, samples, train
from .planted import fault

# Ends by itself when the job is gone.
BURN = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""


@contextlib.contextmanager
def burning(count, core=None):
    """Other processes that use the cores for as long as the block takes."""
    environment = {
        name: value for name, value in os.environ.items() if "STEPSCOPE" not in name and name != "LD_PRELOAD"
    }
    command = [sys.executable, "-S", "-c", BURN]
    processes = [subprocess.Popen(command, env=environment, start_new_session=True) for _ in range(count)]
    try:
        for process in processes:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


PERIOD_US = 100_000


def groups():
    """The folder in which this process may make a control group with a quota; None where it may not. Version 1 has a
    folder for each kind of limit."""
    root = Path("/sys/fs/cgroup")
    enabled = root / "cgroup.subtree_control"
    if enabled.exists():
        root = root if "cpu" in enabled.read_text().split() else Path("/none")
    else:
        root /= "cpu"
    return root if os.access(root, os.W_OK) and os.access(root / "cgroup.procs", os.W_OK) else None


@contextlib.contextmanager
def quota(used_us):
    """A control group of this process that is stopped once it has used so much of each period."""
    root, own = groups(), Path("/proc/self/cgroup").read_text().splitlines()
    before = next(line.split(":", 2)[2] for line in own if line.split(":")[1] in ("", "cpu", "cpu,cpuacct"))
    group = root / f"stepscope-bench-{os.getpid()}"
    group.mkdir()
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{used_us} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(used_us))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (root / before.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


@fault("host.cpu_contention", anywhere=True)
def neighbours(job):
    """Other processes, twice as many as there are cores, run beside the job."""
    width = job.draw.choice([512, 640, 768])
    model, batch = perceptron(width, 3), samples(128, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    cores = len(os.sched_getaffinity(0))
    with burning(0 if job.fixed else job.draw.choice([2, 3]) * cores):
        for _ in job.steps():
            train(model, optimizer, batch)


@fault("host.few_threads", "host.cpu_quota", anywhere=True)
def pinned_to_a_core(job):
    """All threads of the job may use a single core."""
    core = job.draw.choice(sorted(os.sched_getaffinity(0)))
    if not job.fixed:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})
    width = job.draw.choice([768, 896, 1024])
    model, batch = perceptron(width, 3), samples(256, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in job.steps():
        train(model, optimizer, batch)


@fault("host.few_threads", anywhere=True)
def one_thread(job):
    """Large products run on one thread of several."""
    if not job.fixed:
        torch.set_num_threads(1)
    width = job.draw.choice([768, 896, 1024])
    model, batch = perceptron(width, 3), samples(256, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in job.steps():
        train(model, optimizer, batch)


def cpu_quota(job):
    """The control group of the job may take less than its threads could."""
    width = job.draw.choice([768, 896, 1024])
    model, batch = perceptron(width, 3), samples(256, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    used_us = int(job.draw.choice([0.2, 0.25, 0.3]) * PERIOD_US * len(os.sched_getaffinity(0)))
    with contextlib.nullcontext() if job.fixed else quota(used_us):
        for _ in job.steps():
            train(model, optimizer, batch)


# Where this process may make no control group, there is no such job.
if groups():
    fault("host.cpu_quota", anywhere=True)(cpu_quota)
