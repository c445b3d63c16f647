"""Runs a workload in processes of its own, and compares what they recorded.

In three ways: ``turns``, one process in which the profilers record in turn; ``apart``, a fresh process for each; and
``record``, a fresh process under ``stepscope record``. A process that crashes or hangs is a check that could not run.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from gpu import checks, cost, workloads
from gpu.outcome import FAILS, HOLDS, NOT_RUN, Outcome
from gpu.profilers import STEPSCOPE, TORCH
from gpu.trace import read

TURNS, APART, RECORD = "turns", "apart", "record"
WAYS = (TURNS, APART, RECORD)
CHECK = Path(__file__).resolve().parent / "check.py"
# Compiling, the first time, takes longest.
LIMIT_S = 240


@dataclass
class Row:
    """One workload, recorded in one way."""

    workload: str
    way: str
    outcomes: list
    counts: dict = field(default_factory=dict)
    costs: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    runs: list = field(default_factory=list)

    def as_dict(self):
        return {
            "workload": self.workload,
            "way": self.way,
            "holds": self.holds,
            "counts": self.counts,
            "costs": self.costs,
            "checks": [outcome.as_dict() for outcome in self.outcomes],
        }

    @property
    def holds(self):
        return all(outcome.is_good for outcome in self.outcomes)


def run(name, way, folder, options):
    """Records and compares; a :class:`Row`, whatever happens."""
    answers = []
    for label, names in _processes(way):
        answer = _run_job(name, way, folder / label, names, options)
        if "recordings" not in answer:
            why = answer.get("unavailable") or answer["failed"]
            return Row(name, way, [Outcome("recording", NOT_RUN, f"{label}: {why}")])
        answers.append(answer)
    try:
        return _compared(name, way, answers)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Row(name, way, [Outcome("recording", FAILS, f"the traces cannot be read: {error!r}")])


def _processes(way):
    return {
        TURNS: [("turns", [TORCH, STEPSCOPE])],
        APART: [("torch", [TORCH]), ("stepscope", [STEPSCOPE])],
        RECORD: [("torch", [TORCH]), ("record", [])],
    }[way]


def _run_job(name, way, folder, names, options):
    folder.mkdir(parents=True)
    job = {
        "workload": name,
        "profilers": names,
        "folder": str(folder),
        "rounds": options.rounds,
        "steps": workloads.workload(name).STEPS,
        "all_threads": workloads.all_threads(name),
        "on_cpu": options.on_cpu,
    }
    command = [sys.executable, str(CHECK), "--job", json.dumps(job)]
    if not names:
        command = [
            sys.executable,
            "-m",
            "stepscope",
            "record",
            "--gpu",
            "native",
            "-o",
            str(folder / "run"),
            "--",
            *command,
        ]
    failed = _run_process(command, folder / "output.txt", options.variables)
    try:
        answer = json.loads((folder / "answer.json").read_text())
    except (OSError, ValueError):
        return {"failed": failed or "it wrote no answer"}
    # A crash at the end of the process is one, too.
    if failed and "unavailable" not in answer:
        return {"failed": answer.get("failed", failed)}
    if not names and "recordings" in answer:
        return _converted(folder, answer)
    return answer


def _run_process(command, output, variables):
    """Runs it, with what it prints in a file; says what went wrong."""
    environment = {**os.environ, "KINETO_LOG_LEVEL": "99", "PYTHONFAULTHANDLER": "1", **variables}
    with open(output, "w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            # It and all that it started, a process group of its own.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"not done after {LIMIT_S} s, see {output}"
    if code == 0:
        return None
    ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{ended}, see {output}"


def _converted(folder, answer):
    """The answer of a process below ``stepscope record``, with the Chrome trace of its run."""
    trace = folder / "trace.json"
    command = [sys.executable, "-m", "stepscope", "convert", str(folder / "run"), "-o", str(trace)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": f"stepscope convert: {done.stderr.strip()[-200:]}"}
    return {**answer, "recordings": [{"profiler": STEPSCOPE, "round": 0, "trace": str(trace)}]}


def _compared(name, way, answers):
    recordings = [recording for answer in answers for recording in answer["recordings"]]
    theirs, ours = (_traces(recordings, profiler) for profiler in (TORCH, STEPSCOPE))
    runs = [Path(row["trace"]).parent / "run" for row in recordings if row["profiler"] == STEPSCOPE]
    outcomes = checks.compare(theirs, ours, workloads.expected(name))
    outcomes.append(findings(runs, way))
    counts = {"torch": checks.counts(theirs), "stepscope": checks.counts(ours)}
    return Row(name, way, outcomes, counts, cost.of(answers), answers[-1].get("environment", {}), runs)


def _traces(recordings, profiler):
    files = [row["trace"] for row in recordings if row["profiler"] == profiler]
    return [trace for file in files for trace in read(file)]


def findings(runs, way):
    """Holds when no run has a finding about devices: nothing was lost, refused or left out."""
    # In turns torch.profiler stays CUPTI's subscriber, which a run remarks.
    expected = {"capture.device_remarks"} if way == TURNS else set()
    named = []
    for run_folder in runs:
        command = [sys.executable, "-m", "stepscope", "analyze", "findings", str(run_folder), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return Outcome("findings", NOT_RUN, f"stepscope analyze findings: {done.stderr.strip()[-200:]}")
        codes = {row["code"] for row in json.loads(done.stdout)["results"]} - expected
        named += [code for code in codes if "device" in code]
    if named:
        return Outcome("findings", FAILS, f"findings of the runs: {', '.join(sorted(set(named)))}")
    return Outcome("findings", HOLDS)
