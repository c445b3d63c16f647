"""Records one workload in this process, and measures what that costs; the parent compares what comes out.

Each round is a recording of every profiler asked for, in turn, in an order that changes; with none it is only a label,
for a recording of the whole process. A recording's first step is timed by itself, and not compared: a thread's first
event costs what no later one does. Steps without a profiler are timed before the first round, beside each recording, and
after the last.
"""

import json
import statistics
import time
import traceback

from gpu import environment, profilers
from gpu.trace import LABEL
from gpu.workloads import Unavailable, workload

WARM_UP_STEPS = 3


def run(job):
    """Does what ``job`` says; the answer, or ``{"unavailable": why}``."""
    import torch

    if not job["on_cpu"] and not torch.cuda.is_available():
        return {"unavailable": "torch.cuda.is_available() is false"}
    try:
        with workload(job["workload"]).ready(torch, "cpu" if job["on_cpu"] else "cuda") as step:
            return {**_measure(torch, step, job), "environment": environment.of_process(torch)}
    except Unavailable as why:
        return {"unavailable": str(why)}


def main(job):
    """Writes the answer into the job's folder: what a program prints may be mixed with what libraries print."""
    try:
        answer = run(job)
    except Exception as error:
        traceback.print_exc()
        answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0]}
    (job["folder"] / "answer.json").write_text(json.dumps(answer, indent=2))


def _measure(torch, step, job):
    steps, plain = job["steps"], []
    for _ in range(WARM_UP_STEPS):
        step()
    before = [_burst(torch, step, steps) for _ in range(3)]
    recordings = []
    for round_number in range(job["rounds"]):
        order = job["profilers"] if round_number % 2 == 0 else job["profilers"][::-1]
        if not order:
            _labelled(torch, step, steps)
        for name in order:
            plain.append(_burst(torch, step, steps))
            recordings.append(_record(torch, step, job, name, round_number))
            plain.append(_burst(torch, step, steps))
    after = [_burst(torch, step, steps) for _ in range(3)]
    return {
        "steps": steps,
        "recordings": recordings,
        "step_ns_plain": statistics.median(plain or before) / steps,
        "step_ns_before": min(before) / steps,
        "step_ns_after": min(after) / steps,
    }


def _record(torch, step, job, name, round_number):
    folder = job["folder"] / f"{name}-{round_number}"
    folder.mkdir(parents=True)
    stand_in = getattr(workload(job["workload"]), "StandIn", None)
    recording = profilers.make(name, torch, folder, job["all_threads"], stand_in)
    recording.start()
    try:
        first = _burst(torch, step, 1)
        spent = _labelled(torch, step, job["steps"])
    finally:
        recording.stop()
    recording.save()
    return {
        "profiler": name,
        "round": round_number,
        "first_step_ns": first,
        "step_ns": spent / job["steps"],
        "trace": str(recording.path),
        "trace_bytes": recording.path.stat().st_size,
        **{f"{what}_s": seconds for what, seconds in recording.seconds.items()},
    }


def _labelled(torch, step, steps):
    """A burst with the label around it, which begins and ends with an idle device."""
    _synchronize(torch)
    with torch.profiler.record_function(LABEL):
        return _burst(torch, step, steps)


def _burst(torch, step, steps):
    """Wall ns of some steps: the device works beside the host, so the last of both counts."""
    begin = time.perf_counter_ns()
    for _ in range(steps):
        step()
    _synchronize(torch)
    return time.perf_counter_ns() - begin


def _synchronize(torch):
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
