"""What is recorded: small seeded jobs, a file each.

A workload has a docstring, whose first line ``check.py --list`` prints; ``STEPS``, how many steps a recording has;
``EXPECTED``, the checks that must find something to compare; and ``ready(torch, device)``, a context manager that gives
a function which does one step. ``ALL_THREADS = True`` where other threads than the main one run operators. One more,
``rehearsal``, has a GPU that is made up, and a ``StandIn`` for torch.profiler.
"""

import importlib

NAMES = (
    "convnet",
    "gpt",
    "graphs",
    "streams",
    "copies",
    "collectives",
    "compiled",
    "threads",
    "tiny_kernels",
)


class Unavailable(Exception):
    """The workload cannot run here; the message says why."""


def workload(name):
    return importlib.import_module(f"gpu.workloads.{name}")


def says(name):
    return workload(name).__doc__.splitlines()[0]


def expected(name):
    return workload(name).EXPECTED


def all_threads(name):
    return getattr(workload(name), "ALL_THREADS", False)
