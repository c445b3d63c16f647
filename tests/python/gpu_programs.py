"""Programs that use a fake GPU: what they begin with, how they are run, and what is read of them."""

import json

import fake_gpu
import runs

# What every program below begins with: ``gpu`` is the fake GPU, ``plant(n)`` has it report n kernels.
PRELUDE = """
import json, os, sys, threading, time
from pathlib import Path
import fake_gpu
from fake_gpu import Gpu
from stepscope import _recorder
gpu = Gpu(sys.argv[1])
gpu.use(0)
run = Path(sys.argv[2])
run.mkdir(exist_ok=True)
def plant(count, first=1, name="k", **values):
    now = time.monotonic_ns()
    return [gpu.put(fake_gpu.KERNEL, start=now + 100 * n, end=now + 100 * n + 50, stream=7, context=1,
                    correlation=first + n, name=name, **values) for n in range(count)]
def refused(**options):
    try:
        fake_gpu.start(**options)
    except RuntimeError as why:
        return str(why)
"""


def execute(libraries, run, text, cuda="13.0", **options):
    """Run a few lines after the prelude; gives what they print as JSON."""
    environment = {**fake_gpu.environment(libraries, cuda), **options.pop("variables", {})}
    result = runs.execute(
        *runs.new_script(PRELUDE + text, libraries, run), env=runs.environment(**environment), **options
    )
    return json.loads(result.stdout or "null")


def kernels(run):
    return [row for row in runs.rows(run) if row["kind"] == "kernel"]


def lost(run):
    return sum(row["value"] for row in runs.rows(run) if row["kind"] == "device_lost")
