"""A program in Rust that records itself, beside one in Python: one run, one report."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import runs

STEPS, WORKERS = 4, 2

PROGRAM = """
import os, subprocess, sys
import torch
from stepscope.profiler import profile, schedule

def work():
    for step in range(3):
        torch.ones(2).erfinv()
        if step == 1:
            subprocess.run(rust, check=True, env={**os.environ, "RANK": "1"})
        yield step

rust, run = sys.argv[2:], sys.argv[1]
if run == "recorded from outside":
    list(work())
else:
    with profile(schedule=schedule(wait=0, warmup=0, active=3), run=run) as prof:
        for step in work():
            prof.step()
"""


@pytest.fixture(scope="module")
def threads():
    """The example program ``threads`` of the Rust crate: in the folder of built examples that is named, or built here."""
    if "STEPSCOPE_EXAMPLES" in os.environ:
        return str(Path(os.environ["STEPSCOPE_EXAMPLES"]) / "threads")
    command = ["cargo", "build", "--release", "--workspace", "--example", "threads"]
    built = subprocess.run(
        [*command, "--message-format=json", "--quiet"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert built.returncode == 0, built.stderr
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    (path,) = {message["executable"] for message in messages if message.get("executable")}
    return path


@pytest.mark.parametrize("how", ["record", "api"])
def test_both_are_in_one_run(how, threads, tmp_path):
    run, elsewhere = tmp_path / "run", tmp_path / "not used"
    rust = [threads, elsewhere, STEPS, WORKERS]
    ranks = {"env": runs.environment(RANK=0, WORLD_SIZE=2)}
    if how == "record":
        runs.record(run, runs.new_script(PROGRAM, "recorded from outside", *rust), **ranks)
    else:
        runs.execute(*runs.new_script(PROGRAM, run, *rust), **ranks)
    assert not elsewhere.exists()

    parts = [runs.metadata(part) for part in runs.parts(run)]
    assert [part["facts"]["rank"] for part in parts] == ["0", "1"]
    assert {part["facts"]["world_size"] for part in parts} == {"2"}
    assert not any(part["is_killed"] or part["dropped"] or part["damaged"] for part in parts)
    rust = parts[1]
    assert (rust["facts"]["process_name"], rust["facts"]["example"]) == ("threads", "threads")

    rows = runs.rows(run)
    of_rust = [row for row in rows if row["process_name"] == "threads"]
    labels = Counter((row["thread_name"], row["name"]) for row in of_rust if row["kind"] == "label")
    for worker in range(WORKERS):
        assert labels[f"worker number {worker}", "work"] == STEPS
        assert (
            labels[f"worker number {worker}", "even piece"]
            == labels[f"worker number {worker}", "odd piece"]
            == 5 * STEPS
        )
    assert not [row for row in of_rust if row["kind"] == "op"]
    of_python = runs.named(rows, "aten::erfinv")
    assert len(of_python) == 3 and not {row["pid"] for row in of_python} & {row["pid"] for row in of_rust}
    # Both clocks are one: the child ran between the parent's second step and its third.
    begin, end = of_python[1]["start_ns"] + of_python[1]["dur_ns"], of_python[2]["start_ns"]
    assert all(begin <= row["start_ns"] and row["start_ns"] + row["dur_ns"] <= end for row in of_rust)

    assert {row["rank"] for row in runs.analyze("step_breakdown", run)["results"]} == {0, 1}
    assert runs.counts_of_operators(run)["aten::erfinv"] == 3
    heading = runs.report(run).splitlines()[1]
    assert heading.startswith("2 ranks · 2 processes: python (pid ") and ", threads (pid " in heading
