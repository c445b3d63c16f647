"""What a recorded event takes on disk: while it is recorded, and as Parquet."""

import subprocess
import sys
from pathlib import Path

import torch

from record.configurations import CONFIGURATIONS
from record.profilers import Stepscope
from record.workloads import hot_loop, small_gpt_step

EVENTS = 500_000
WORKLOADS = {"hot loop": hot_loop, "small GPT step": small_gpt_step}


def jobs(_arguments):
    return [{"configuration": name, "workload": workload} for workload in WORKLOADS for name in CONFIGURATIONS]


def measure(job, _arguments, folder):
    torch.set_num_threads(1)
    run, ops = WORKLOADS[job["workload"]]()
    profiler = Stepscope(folder, job["configuration"])
    profiler.start()
    times = -(-EVENTS // ops)
    [run() for _ in range(times)]
    profiler.close()
    raw = _bytes(folder, "raw/*.capture")
    subprocess.run([sys.executable, "-m", "stepscope", "recover", folder], check=True, capture_output=True)
    parts = _bytes(folder, "rank=*/*.parquet")
    events = times * ops
    return {"ops": events, "raw_bytes_per_op": raw / events, "compacted_bytes_per_op": parts / events}


def _bytes(folder, pattern):
    return sum(path.stat().st_size for path in Path(folder).glob(pattern))


def line(job, result):
    name = f"{job['workload']:<15} {job['configuration']:<7}"
    return (
        f"{name} {result['raw_bytes_per_op']:6.1f} bytes an op raw, {result['compacted_bytes_per_op']:5.1f} compacted"
    )
