"""Some steps are recorded now and then, and the time between them is neither steps nor idle."""

import sys
from collections import Counter

import pytest
import runs
import torch
from stepscope import _sampling
from stepscope.profiler import ProfilerAction, profile, sampled

TRAIN = """
import gc, sys, time, torch
from torch.profiler import record_function
gc.disable()  # When it would collect is chance.
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
hooked = []
for step in range(int(sys.argv[1])):
    if "stepscope" in sys.modules:
        from stepscope import _recorder
        hooked.append(_recorder.is_hooked())
    with record_function(f"step {step}"):
        torch.erfinv(torch.zeros(4))
        model(torch.ones(2, 16)).sum().backward()
    optimizer.step()
    time.sleep(0.002)
print(*[step for step, is_hooked in enumerate(hooked) if is_hooked])
"""

PROFILED = """
import torch
from stepscope.profiler import profile
optimizer = torch.optim.SGD([torch.zeros(4, requires_grad=True)], lr=0.001)
with profile() as prof:
    for step in range(40):
        torch.erfinv(torch.zeros(4))
        optimizer.step()
        optimizer.step()
        prof.step()
"""


def record(run, *options, steps=40):
    """Record a training loop; gives the steps in which there was a callback."""
    command = runs.script(TRAIN, steps)
    told = runs.stepscope("record", "-o", run, *options, "--", *command)
    return [int(number) for number in told.stdout.split()]


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--every", "15", "--for", "3"], [10, 11, 12, 25, 26, 27]),
        (["--every", "4", "--for", "1"], list(range(3, 40, 4))),
        (["--steps", "5..8"], [5, 6, 7, 8]),
        (["--steps", "0"], [0]),
        (["--steps", "37.."], [37, 38, 39]),
        (["--schedule", "wait=3,warmup=2,active=2,repeat=2,skip_first=1"], [6, 7, 13, 14]),
    ],
)
def test_the_active_steps_are_recorded_and_no_others(tmp_path, options, expected):
    run = tmp_path / "run"
    assert record(run, *options) == expected
    rows = runs.rows(run)
    assert [row["step"] for row in rows if row["kind"] == "optimizer_step"] == expected
    assert [row["name"] for row in rows if row["name"].startswith("step ")] == [f"step {step}" for step in expected]
    assert len(runs.named(rows, "aten::erfinv")) == len(expected)
    found = [row for row in runs.analyze("step_breakdown", run)["results"] if row["step"] is not None]
    assert [row["step"] for row in found] == expected
    # Nobody knows where step 0 began.
    assert all(row["is_complete"] for row in found if row["step"] > 0)
    # A step takes a few milliseconds; the time that was not recorded is in none of them.
    ends = [row["start_ns"] + row["total_ns"] for row in found]
    following = zip(found, found[1:], ends)
    for first, second, end in following:
        assert second["start_ns"] - end < 1_000 or second["step"] > first["step"] + 1
    assert runs.findings(run)["capture.sampled_steps"]["count"] == 1


def test_a_sampled_step_has_the_ops_that_a_recorded_one_has(tmp_path):
    def of_step(run, number):
        rows = runs.rows(run)
        (label,) = runs.named(rows, f"step {number}")
        end = label["start_ns"] + label["dur_ns"]
        # Counters are read when their time has come, whatever the step.
        inside = (row for row in rows if label["start_ns"] <= row["start_ns"] < end and row["kind"] != "counter")
        return Counter(row["name"] for row in inside)

    assert record(tmp_path / "some", "--steps", "6..8", steps=12) == [6, 7, 8]
    assert record(tmp_path / "all", steps=12) == list(range(12))
    for number in (6, 7, 8):
        assert of_step(tmp_path / "some", number) == of_step(tmp_path / "all", number)


def test_the_time_between_is_in_no_step(tmp_path):
    run = tmp_path / "run"
    expected = [10, 11, 12, 25, 26, 27]
    assert record(run, "--every", "15", "--for", "3") == expected
    found = [row for row in runs.analyze("step_breakdown", run)["results"] if row["step"] is not None]
    assert [row["step"] for row in found] == expected
    before, after = found[2], found[3]
    # Each step sleeps for 2 ms; whether the sleep at either end is a step's is left open.
    between_ns = after["start_ns"] - (before["start_ns"] + before["total_ns"])
    assert between_ns >= (after["step"] - before["step"] - 2) * 2_000_000


def test_a_profiler_of_the_program_says_what_a_step_is(tmp_path):
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--every", "10", "--for", "2", "--", sys.executable, "-c", PROFILED)
    rows = runs.rows(run)
    # It records what it asks for, which is every step, also where the command wants only some.
    numbers = [row["step"] for row in rows if row["kind"] == "step"]
    assert numbers[-4:] == [37, 38, 39, 40]
    assert len(runs.named(rows, "aten::erfinv")) == 40


def test_a_job_that_never_gets_there_says_so(tmp_path):
    run = tmp_path / "run"
    told = runs.stepscope("record", "-o", run, "--steps", "100..110", "--", *runs.script(TRAIN, 5))
    assert "nothing was recorded" in told.stderr


@pytest.mark.parametrize(
    "options, said",
    [
        (["--for", "5"], "--every"),
        (["--every", "5", "--for", "6"], "--for"),
        (["--every", "0"], "0"),
        (["--every", "5", "--steps", "1..2"], "--steps"),
        (["--steps", "9..2"], "the last step is before the first"),
        (["--schedule", "wait=1"], "active"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path, options, said):
    told = runs.stepscope("record", "-o", tmp_path / "run", *options, "--", "true", code=2)
    assert said in told.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "keywords",
    [
        {"wait": 1, "warmup": 2, "active": 3, "repeat": 2, "skip_first": 1},
        {"wait": 2, "active": 1},
        {"wait": 2, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 3, "skip_first_wait": 1},
    ],
)
def test_steps_are_active_as_torch_says(keywords):
    theirs = torch.profiler.schedule(**{"warmup": 0, **keywords})
    recorded = ("RECORD", "RECORD_AND_SAVE")
    expected = [theirs(step).name in recorded for step in range(60)]
    assert [_sampling.is_active(keywords, step)[0] for step in range(60)] == expected


def test_the_api_samples_too(tmp_path):
    schedule = sampled(every=20, active=2)
    assert [step for step in range(60) if schedule(step) is not ProfilerAction.NONE] == [10, 11, 30, 31, 50, 51]
    assert schedule(11) is ProfilerAction.RECORD_AND_SAVE
    with profile(schedule=schedule, run=tmp_path / "run") as prof:
        for _ in range(40):
            torch.erfinv(torch.zeros(4))
            prof.step()
    rows = runs.rows(prof.run)
    assert [row["step"] for row in rows if row["kind"] == "step"] == [10, 11, 30, 31]
    assert len(runs.named(rows, "aten::erfinv")) == 4
    assert "capture.sampled_steps" in runs.findings(prof.run)
