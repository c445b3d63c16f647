"""Whether advice names what is wrong with a job: planted faults with their repaired twins, and healthy jobs.

Run by ``cargo xtask bench insight``. A job is a function in ``benches/insight``; its file is the kind of its fault. The
faulty job and its repaired twin run in turn without recording: what the repair saves is the true gain. Then the faulty one
is recorded, and the rows of ``stepscope analyze advice`` are compared with what the job declares:

- ``found``: the first row whose rule and place are right: 1, 2, 3 …; ``class 2`` when a row has only the right rule; of a
  job with two faults, that of the later one;
- ``true`` and ``said``: the gain by measurement, and the one of that row, as shares of a step;
- ``verdict``: the seconds that the advice takes;
- of a healthy job, the rows with priority high or medium: false alarms.
"""

import argparse
import dataclasses
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from insight.job import WARMUP
from insight.planted import all_planted

JOB = Path(__file__).resolve().parent / "insight" / "job.py"
STEPSCOPE = [sys.executable, "-m", "stepscope"]
# A recorded job and its import of PyTorch, on a busy machine.
TIMEOUT_S = 300
# Estimates of a gain that are no upper bounds: forecasts, and the least that is gained.
FORECASTS = ("removal", "replay")
FLOOR = "floor"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="jobs whose name or kind has one of these words, as 'gc,ranks'")
    parser.add_argument("--seeds", default="1", help="sizes are drawn from each of these, as 1,2,3")
    parser.add_argument(
        "--rounds", type=int, default=3, help="runs of the job and of its twin for the true gain; 0: none"
    )
    parser.add_argument("--longer", type=int, default=1, help="each real job has this many times as many steps")
    parser.add_argument("--small", action="store_true", help="one seed and no true gains")
    parser.add_argument("--least", type=int, default=0, help="fail when fewer faults are named first")
    parser.add_argument("--json", type=Path, help="also write all rows and verdicts to this file")
    parser.add_argument("--keep", type=Path, help="keep the recorded runs in this folder")
    parser.add_argument("--again", action="store_true", help="judge what --keep has kept, and record nothing")
    parser.add_argument("--list", action="store_true", help="print the jobs and what is expected of them")
    arguments = parser.parse_args()
    if arguments.again and not arguments.keep:
        parser.error("--again judges what is in the folder that --keep names")
    words = [word for word in arguments.only.split(",") if word]
    planted = all_planted().values()
    jobs = [dataclasses.replace(job, steps=job.steps * arguments.longer) for job in planted]
    jobs = [job for job in jobs if not words or any(word in f"{job.kind}.{job.name}" for word in words)]
    if not arguments.list and not has_gpu():
        jobs = [job for job in jobs if not job.needs_gpu]
    if arguments.list:
        for job in jobs:
            print(f"{job.kind:14} {job.name:26} {' '.join(job.classes) or '-':44} {job.run.__doc__.splitlines()[0]}")
        return
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    seeds, rounds = (seeds[:1], 0) if arguments.small else (seeds, arguments.rounds)
    results = []
    print(
        "| kind | job | seed | found | true | said | verdict | first row |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    for job in jobs:
        for seed in seeds:
            results.append(measured(job, seed, rounds, arguments.keep, arguments.again))
            print(line(results[-1]), flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps({"environment": environment(), "results": results}, indent=1))
    if results:
        print(summary(results, seeds, rounds))
    if any(result["error"] for result in results) or sum(result["found"] == 1 for result in results) < arguments.least:
        sys.exit(1)


def measured(job, seed, rounds, keep, is_again=False):
    """Everything about a job of one seed."""
    result = {"job": job.name, "kind": job.kind, "seed": seed, "error": None, "true_gain": None, "step_ms": None}
    # Runnable threads of the machine for each core: much above 1, a healthy job does wait for cores.
    result["load"] = os.getloadavg()[0] / (os.cpu_count() or 1)
    result.update(
        {
            "found": None,
            "class_found": None,
            "said_gain": None,
            "estimate": None,
            "verdict_s": None,
            "rows": [],
            "alarms": [],
        }
    )
    try:
        if rounds and job.step_time:
            result.update(true_gain(job, seed, rounds))
        result.update(recorded(job, seed, keep, is_again))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        result["error"] = str(error)
    return result


def true_gain(job, seed, rounds):
    """What the repair saves: faulty and repaired run in turn, and each is compared with its neighbour, so that a busy
    moment of the machine meets both."""
    pairs = []
    for number in range(1 if job.is_simulated else rounds):
        with tempfile.TemporaryDirectory(prefix="stepscope-insight-") as folder:
            # The second one first in every other round: which is first may matter.
            of_twin = {
                is_fixed: run(job, seed, folder, fixed=is_fixed) for is_fixed in (number % 2 == 1, number % 2 == 0)
            }
        pairs.append((of_twin[False], of_twin[True]))
    faulty, fixed = (statistics.median(of_kind) for of_kind in zip(*pairs))
    gain = statistics.median(1 - pair[1] / pair[0] for pair in pairs)
    return {"true_gain": gain, "step_ms": faulty, "step_ms_fixed": fixed}


def recorded(job, seed, keep, is_again=False):
    """What advice says about the recorded job; ``is_again``: as it was recorded before."""
    with tempfile.TemporaryDirectory(prefix="stepscope-insight-") as folder:
        run_folder = (keep.resolve() / f"{job.name}-{seed}") if keep else Path(folder) / "run"
        step_ms = None
        if not is_again:
            # One that an earlier bench kept makes place.
            shutil.rmtree(run_folder, ignore_errors=True)
            run_folder.parent.mkdir(parents=True, exist_ok=True)
            step_ms = run(job, seed, folder, record_to=run_folder)
        begin = time.monotonic()
        command = [*STEPSCOPE, "analyze", "advice", run_folder, "--json"]
        done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)
        verdict_s = time.monotonic() - begin
    if done.returncode:
        raise RuntimeError(f"advice failed: {done.stderr.strip()[-300:]}")
    rows = json.loads(done.stdout)["results"]
    found, class_found = job.found(rows)
    alarms = [row["rule"] for row in rows if row["priority"] in ("high", "medium")]
    return {
        "found": found,
        "class_found": class_found,
        "said_gain": rows[found - 1]["gain_ratio"] if found else None,
        "estimate": rows[found - 1]["gain_estimate"] if found else None,
        "verdict_s": verdict_s,
        "step_ms_recorded": step_ms,
        "alarms": alarms if job.kind == "controls" else [],
        "rows": rows,
    }


def run(job, seed, folder, fixed=False, record_to=None):
    """Runs the job; returns the ms of a step."""
    times = Path(folder) / "times.json"
    prefix = [*STEPSCOPE, "record", "--output", record_to, "--"] if record_to and not job.is_simulated else []
    command = [*prefix, sys.executable, JOB, job.name, "--seed", seed, "--steps", job.steps, "--ranks", job.ranks]
    command += ["--trace", record_to] if record_to and job.is_simulated else []
    command += ["--times", times, *(["--fixed"] if fixed else [])]
    # The job says itself how many threads it has. They sleep while they wait: on a busy machine, threads that spin take
    # the cores from those they wait for, and a step takes ten times as long now and then.
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["OMP_WAIT_POLICY"] = "PASSIVE"
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if job.fails and not fixed:
        return None
    if done.returncode:
        raise RuntimeError(f"the job ended with {done.returncode}: {done.stderr.strip()[-600:]}")
    # A simulated device has nothing to warm up, and advice judges all of its steps.
    step_ns = json.loads(times.read_text())[0 if job.is_simulated else WARMUP :]
    sum_up = statistics.mean if job.step_time == "mean" else statistics.median
    return sum_up(step_ns) / 1e6


def line(result):
    """The job's row of the table."""
    rows = result["rows"]
    cells = [result["kind"], result["job"], result["seed"], found(result), percent(result["true_gain"])]
    cells += [percent(result["said_gain"]), "" if result["verdict_s"] is None else f"{result['verdict_s']:.1f} s"]
    first = f"{rows[0]['rule']} {percent(rows[0]['gain_ratio'])}".strip() if rows else "-"
    return f"| {' | '.join(map(str, [*cells, result['error'] or first]))} |".replace("\n", " ")


def found(result):
    if result["error"]:
        return "error"
    if result["kind"] == "controls":
        return f"false alarm: {', '.join(result['alarms'])}" if result["alarms"] else "silent"
    return result["found"] or (f"class {result['class_found']}" if result["class_found"] else "no")


def percent(ratio):
    return "" if ratio is None else f"{100 * ratio:.1f} %"


def summary(results, seeds, rounds):
    """The last lines: how many are right."""
    controls = [result for result in results if result["kind"] == "controls" and not result["error"]]
    faults = [result for result in results if result["kind"] not in ("controls", "compound")]
    compound = [result for result in results if result["kind"] == "compound"]

    def count(is_right):
        return f"{sum(map(is_right, faults))} of {len(faults)}"

    lines = ["", f"n = {len(results)}, seeds {', '.join(map(str, seeds))}, {rounds} rounds; {environment()}", ""]
    lines += [f"- named first, with its place: {count(lambda result: result['found'] == 1)}"]
    lines += [f"- among the first three: {count(lambda result: (result['found'] or 9) <= 3)}"]
    lines += [f"- class alone, anywhere: {count(lambda result: result['class_found'] is not None)}"]
    if compound:
        both = sum((result["found"] or 9) <= 3 for result in compound)
        lines += [f"- both of two faults among the first three: {both} of {len(compound)}"]
    alarmed = sum(bool(result["alarms"]) for result in controls)
    lines += [f"- healthy jobs with a false alarm: {alarmed} of {len(controls)}"]
    known = [result for result in faults if None not in (result["said_gain"], result["true_gain"])]
    errors = sorted(
        abs(result["said_gain"] - result["true_gain"]) for result in known if result["estimate"] in FORECASTS
    )
    if errors:
        # By nearest rank.
        median, p90 = (100 * errors[-(-len(errors) * part // 10) - 1] for part in (5, 9))
        lines += [
            f"- forecast gains against true ones, {len(errors)}: {median:.1f} points at the median, {p90:.1f} at p90"
        ]
    floors = [result for result in known if result["estimate"] == FLOOR]
    if floors:
        held = sum(result["said_gain"] <= result["true_gain"] for result in floors)
        lines += [f"- gains of at least so much that are no more than the true one: {held} of {len(floors)}"]
    bounds = [result for result in known if result["estimate"] not in (*FORECASTS, FLOOR)]
    if bounds:
        held = sum(result["said_gain"] >= result["true_gain"] for result in bounds)
        lines += [f"- upper bounds that are no less than the true gain: {held} of {len(bounds)}"]
    verdicts = [result["verdict_s"] for result in results if result["verdict_s"] is not None]
    if verdicts:
        lines += [f"- time to the verdict: median {statistics.median(verdicts):.1f} s, longest {max(verdicts):.1f} s"]
    load = statistics.median(result["load"] for result in results)
    lines += [f"- load of the machine for each core, before a job: median {load:.1f}"]
    return "\n".join(lines)


def has_gpu():
    import torch

    return torch.cuda.is_available()


def environment():
    import torch

    machine = f"{os.cpu_count()} CPUs, Linux {platform.release()}"
    return f"torch {torch.__version__}, Python {platform.python_version()}, {machine}"


if __name__ == "__main__":
    main()
