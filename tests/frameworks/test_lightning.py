"""Jobs of Lightning's Trainer have the steps that it counts; validating and saving are outside of them."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
import runs

PROGRAM = Path(__file__).with_name("programs") / "lightning_job.py"


def record(folder, *words, options=()):
    """Record the job; gives the run and the trainers' counts of steps."""
    start = runs.forked if words[1:] else runs.new_program
    command = ["record", *options, "-o", folder / "run", "--", *start(PROGRAM, *words)]
    told = runs.stepscope(*command, cwd=folder)
    return folder / "run", json.loads(told.stdout.splitlines()[-1])


def steps_of(run):
    found = [row for row in runs.analyze("step_breakdown", run)["results"] if row["step"] is not None]
    assert {row["source"] for row in found} == {"label"}
    return [row["step"] for row in found if row["is_complete"]]


def labels_of(run):
    return Counter(row["name"] for row in runs.rows(run) if row["kind"] == "label")


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.parametrize("words", [[], ["accumulate"], ["several"], ["simple"]])
def test_steps_are_those_of_the_trainer(tmp_path, package, words):
    run, (steps,) = record(tmp_path, package, *words)
    # Of several optimizers each counts for Lightning; a turn of its loop is one step.
    expected = steps // 2 if "several" in words else steps
    assert expected == (8 if "accumulate" in words else 16)
    assert steps_of(run) == list(range(expected))
    rows = runs.rows(run)
    labels = labels_of(run)
    assert labels["train micro-step"] == 16 - expected
    assert labels["Trainer.save_checkpoint"] == 4
    if "simple" not in words:
        assert labels["run_training_batch"] == 16
        assert labels["[Strategy]SingleDeviceStrategy.validation_step"] == 32 + 2
    assert not any(row["is_unfinished"] for row in rows if row["kind"] == "label")
    steps = [row for row in rows if row["kind"] == "step"]
    for name in ("Trainer.save_checkpoint", "[Strategy]SingleDeviceStrategy.validation_step"):
        for outside in runs.named(rows, name):
            assert not any(0 <= outside["start_ns"] - step["start_ns"] < step["dur_ns"] for step in steps)


@pytest.mark.parametrize("options", [[], ["--as-torch-profiler"]])
def test_its_own_profiler_stops_in_the_middle_of_ranges_and_makes_no_steps(tmp_path, options):
    """It begins before training, with the validation that Lightning tries first."""
    run, (steps,) = record(tmp_path, "lightning.pytorch", "traced", options=options)
    found = [row["step"] for row in runs.analyze("step_breakdown", run)["results"] if row["step"] is not None]
    assert found == list(range(steps))


def test_a_trainer_after_one_that_failed_counts_on(tmp_path):
    run, steps = record(tmp_path, "lightning.pytorch", "raise")
    assert steps == [3, 16]
    assert steps_of(run) == list(range(19))
    (example,) = runs.findings(run)["capture.step_failed"]["examples"]
    assert example.endswith(": step 3: RuntimeError")


@pytest.mark.parametrize("accumulated", [1, 2])
def test_steps_of_its_own_traces_are_its_batches(tmp_path, accumulated):
    words = ["lightning.pytorch", "traced", *["accumulate"] * (accumulated - 1)]
    told = runs.execute(*runs.forked(PROGRAM, *words), cwd=tmp_path)
    assert json.loads(told.stdout.splitlines()[-1]) == [32 // 2 // accumulated]
    (trace,) = tmp_path.glob("out/fit-x-*training_step*.json")
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("ph") == "X"]

    def named(end):
        return [event for event in events if event["name"].endswith(end)]

    def within(event, outer):
        return outer["ts"] <= event["ts"] < outer["ts"] + outer["dur"]

    labels = [event for event in events if event["name"].startswith("ProfilerStep#")]
    optimizers = [event for event in events if event["name"].startswith("Optimizer.step#")]
    # In each whole batch a label begins. Of several batches that make a step, one has an optimizer.
    batches = [batch for batch in named("run_training_batch") if any(within(label, batch) for label in labels)]
    ending = [batch for batch in batches if any(within(optimizer, batch) for optimizer in optimizers)]
    assert len(batches) >= 2 and len(ending) >= len(batches) // accumulated
    ends = [round((batch["ts"] + batch["dur"]) * 1_000) for batch in ending]
    first_ns = min(round(event["ts"] * 1_000) for event in events)
    rows = [row for row in runs.analyze("step_breakdown", trace)["results"] if row["step"] is not None]
    found = [first_ns + row["start_ns"] + row["total_ns"] for row in rows]
    # The last one is cut by the end of the recording.
    assert len(found) == len(ends) + 1 and not rows[-1]["is_complete"]
    assert all(abs(end - other) < 1_000 for end, other in zip(found, sorted(ends)))
    # Where batches are added up, the first may have begun before the recording.
    complete = [row for row in rows if row["is_complete"]]
    assert len(complete) == len(ends) - (accumulated > 1)
    for row in complete:
        start = first_ns + row["start_ns"]
        step = {"ts": start / 1_000, "dur": row["total_ns"] / 1_000}
        assert sum(within(event, step) for event in named("training_step")) == accumulated
    assert "trace.recut_steps" in runs.findings(trace)


def test_its_profiler_records_a_run(tmp_path):
    told = runs.execute(sys.executable, PROGRAM, "lightning.pytorch", "profiler", cwd=tmp_path)
    assert f"stepscope: next: stepscope report {tmp_path / 'run'}\n" in told.stderr
    assert json.loads(told.stdout.splitlines()[-1]) == [16]
    assert steps_of(tmp_path / "run") == list(range(16))
    processes = json.loads(runs.report(tmp_path / "run", "--json"))["processes"]
    assert len(processes) == 1, "training and validating are recorded each for itself"
    rows = runs.ops(tmp_path / "run")
    assert any(row["inputs"] for row in rows)
    assert labels_of(tmp_path / "run")["run_training_batch"] == 16
