"""Steps that objects of torch.profiler make, alone and beside the optimizer and objects of ours."""

import sys

import pytest
import runs

# Words: what makes the steps, beside the object of torch.profiler.
LOOP = """
import contextlib, sys, torch
from torch.profiler import ProfilerActivity, profile, schedule
makers = sys.argv[1].split("+")
weight = torch.ones(4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.001)
options = {"activities": [ProfilerActivity.CPU]}
if "schedule" in makers:
    options["schedule"] = schedule(wait=100, warmup=1, active=1)
ours = contextlib.nullcontext()
if "ours" in makers:
    import stepscope.profiler
    ours = stepscope.profiler.profile()
with ours:
    with profile(**options) as prof:
        for step in range(40):
            torch.erfinv(torch.zeros(4))
            if "optimizer" in makers:
                optimizer.step()
            if "ours" in makers:
                ours.step()
            prof.step()
    for step in range(10):
        torch.digamma(torch.zeros(4))
        if "optimizer" in makers:
            optimizer.step()
"""


def record(run, makers, *options):
    runs.stepscope("record", "-o", run, *options, "--", *runs.script(LOOP, makers))
    return runs.rows(run)


def steps(run):
    """The numbers of the steps that analyses see."""
    return [row["step"] for row in runs.analyze("step_breakdown", run)["results"] if row["step"] is not None]


@pytest.mark.parametrize("makers", ["none", "schedule", "optimizer", "schedule+optimizer"])
def test_the_command_samples_them(tmp_path, makers):
    rows = record(tmp_path / "run", makers, "--every", "10", "--for", "2")
    # With or without the optimizer each turn of the loop is one step. Afterwards the optimizer alone makes them.
    assert len(runs.named(rows, "aten::erfinv")) == 8
    assert len(runs.named(rows, "aten::digamma")) == (2 if "optimizer" in makers else 0)
    if "schedule" in makers:
        expected = [number for number in range(40) if number % 10 >= 8]
        labels = [row for row in rows if row["name"].startswith("ProfilerStep#")]
        assert [row["name"] for row in labels] == [f"ProfilerStep#{number}" for number in expected]
        assert not any(row["is_unfinished"] for row in labels)
        assert steps(tmp_path / "run") == expected


def test_without_a_schedule_or_an_optimizer_they_are_marked(tmp_path):
    rows = record(tmp_path / "run", "none")
    assert [row["step"] for row in rows if row["kind"] == "optimizer_step"] == list(range(40))
    assert steps(tmp_path / "run") == list(range(40))


def test_with_an_optimizer_its_marks_are_all(tmp_path):
    rows = record(tmp_path / "run", "optimizer")
    assert [row["step"] for row in rows if row["kind"] == "optimizer_step"] == list(range(50))


def test_beside_an_object_of_ours_no_step_counts_twice(tmp_path):
    rows = record(tmp_path / "run", "ours+schedule+optimizer")
    ours = [row["step"] for row in rows if row["kind"] == "step"]
    assert ours == list(range(1, 41)) and steps(tmp_path / "run") == ours
    assert len([row for row in rows if row["name"].startswith("ProfilerStep#")]) >= 40


def test_before_and_after_an_object_of_ours_its_steps_count(tmp_path):
    text = """
import sys, torch, torch.profiler, stepscope.profiler
for profiler in (stepscope.profiler, torch.profiler):
    options = dict(activities=[profiler.ProfilerActivity.CPU], schedule=profiler.schedule(wait=0, warmup=0, active=9))
    with profiler.profile(**options) as prof:
        for _ in range(3):
            torch.ones(2)
            prof.step()
"""
    runs.record(tmp_path / "run", [sys.executable, "-W", "ignore", "-c", text])
    assert len(steps(tmp_path / "run")) >= 6


def test_a_step_of_the_program_goes_on_whatever_happens(tmp_path):
    text = """
import torch
from torch.profiler import ProfilerActivity, profile, schedule
from stepscope import _steps
def fail(*arguments):
    raise RuntimeError("as asked")
_steps.other_profiler_stepped = fail
cycles = []
options = dict(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=1, repeat=2))
with profile(on_trace_ready=cycles.append, **options) as prof:
    for _ in range(5):
        prof.step()
print(len(cycles), prof.step_num)
"""
    assert runs.record(tmp_path / "run", [sys.executable, "-c", text]).stdout == "2 5\n"
