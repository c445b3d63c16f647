"""Faults of the cores that the host gives to the job."""

import contextlib
import os
import subprocess
import sys

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
