"""What comes after the recording: stop, export, the table, and the memory that all of it takes."""

import os
import subprocess
import sys
import time
import warnings

import torch

from record.configurations import CONFIGURATIONS
from record.measuring import cpu_ns, forget_peak, peak
from record.workloads import hot_loop

# torch.profiler needs minutes and gigabytes for the table of a million ops.
OPS_OF_TORCH_TABLE = 100_000


def jobs(arguments):
    rows = [("stepscope", arguments.ops, True), ("torch.profiler", arguments.ops, False)]
    rows.append(("torch.profiler", arguments.ops if arguments.full else OPS_OF_TORCH_TABLE, True))
    return [
        {"configuration": configuration, "who": who, "ops": ops, "with_table": with_table}
        for configuration in ("plain", "shapes")
        for who, ops, with_table in rows
    ]


def measure(job, _arguments, folder):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    hot_loop(1_000)[0]()
    run, _ = hot_loop(job["ops"])
    profile = _profile(job, folder)
    result = {}
    before = forget_peak()

    def stage(name, work):
        start, begun = cpu_ns(), time.perf_counter()
        returned = work()
        spent = {"cpu_s": (cpu_ns() - start) / 1e9, "wall_s": time.perf_counter() - begun}
        result[name] = {**spent, "peak_bytes_added": peak() - before}
        return returned

    stage("start", profile.start)
    stage("record", run)
    stage("stop", profile.stop)
    trace = os.path.join(folder, "trace.json")
    stage("export", lambda: _export(profile, trace))
    result["export"]["bytes"] = os.path.getsize(trace)
    if job["with_table"]:
        stage("table", lambda: _table(profile))
    return result


def _profile(job, folder):
    options, arguments, _ = CONFIGURATIONS[job["configuration"]]
    if job["who"] == "torch.profiler":
        # Its first start of a process imports a large module: that is not what is measured.
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            pass
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **arguments)
    from stepscope.profiler import profile

    return profile(run=os.path.join(folder, "run"), **arguments)


def _export(profile, path):
    if hasattr(profile, "export_chrome_trace"):
        return profile.export_chrome_trace(path)
    return subprocess.run([sys.executable, "-m", "stepscope", "convert", profile.run, "--output", path], check=True)


def _table(profile):
    if hasattr(profile, "key_averages"):
        return profile.key_averages().table(sort_by="self_cpu_time_total")
    import stepscope

    return str(stepscope.open(profile.run).operators())


def line(job, result):
    def text(name, stage):
        size = f", {stage['bytes'] / 1e6:,.0f} MB" if "bytes" in stage else ""
        times = f"{stage['cpu_s'] * 1e3:,.1f} ms ({stage['wall_s'] * 1e3:,.1f} by the clock"
        return f"{name} {times}; {stage['peak_bytes_added'] / 1e6:,.0f} MB{size})"

    stages = "   ".join(text(*item) for item in result.items())
    return f"{job['configuration']:<7} {job['who']:<15} {job['ops']:>9,} ops   {stages}"
