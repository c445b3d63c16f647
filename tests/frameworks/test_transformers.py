"""Jobs of Hugging Face's Trainer have the steps that it counts, and evaluating and saving are outside of them."""

import json
from collections import Counter
from pathlib import Path

import pytest
import runs

PROGRAM = Path(__file__).with_name("programs") / "trainer_job.py"


def record(folder, *words, options=(), start=runs.forked):
    """Record the job; gives the run and the trainers' counts of steps."""
    command = ["record", *options, "-o", folder / "run", "--", *start(PROGRAM, *words)]
    told = runs.stepscope(*command, cwd=folder)
    assert "Exception ignored" not in told.stderr and "not recording" not in told.stderr
    return folder / "run", json.loads(told.stdout.splitlines()[-1])


def steps_of(run):
    found = [row for row in runs.analyze("step_breakdown", run)["results"] if row["step"] is not None]
    assert {row["source"] for row in found} == {"label"}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, start",
    [
        (["plain"], runs.new_program),
        # What is imported before all else.
        (["first"], runs.new_program),
        (["--report_to", "stepscope"], runs.forked),
        (["zero1"], runs.forked),
        (["zero2"], runs.forked),
        (["zero3"], runs.forked),
    ],
)
def test_steps_are_those_of_the_trainer(tmp_path, words, start):
    run, (steps,) = record(tmp_path, *words, start=start)
    assert steps == 6
    has_steps_and_phases_of_the_trainer(run, words)


@pytest.mark.parametrize("words", [["first"], ["imported", "--report_to", "stepscope"]])
def test_a_program_that_records_itself_has_the_same_steps(tmp_path, words):
    told = runs.execute(*runs.forked(PROGRAM, *words), cwd=tmp_path)
    assert json.loads(told.stdout.splitlines()[-1]) == [6]
    (run,) = (tmp_path / "stepscope-runs").iterdir()
    assert f"stepscope: next: stepscope report {run}\n" in told.stderr
    has_steps_and_phases_of_the_trainer(run, words)


def has_steps_and_phases_of_the_trainer(run, words):
    found = steps_of(run)
    assert [(row["step"], row["is_complete"]) for row in found] == [(step, True) for step in range(6)]
    rows = runs.rows(run)
    labels = Counter(row["name"] for row in rows if row["kind"] == "label")
    assert (labels["training_step"], labels["evaluate"], labels["save_checkpoint"]) == (12, 3, 2)
    # A batch of the two that make a step.
    assert labels["train micro-step"] == 6
    if words[0] in ("zero1", "zero2"):
        assert labels["Optimizer.step#AdamW.step"] == 12, "two groups of parameters"
    if words[0].startswith("zero"):
        assert (labels["fwd"], labels["bwd"], labels["step"]) == (12, 12, 6)
    # They come between the end of a step and the begin of the next.
    steps = [row for row in rows if row["kind"] == "step"]
    for outside in (*runs.named(rows, "evaluate"), *runs.named(rows, "save_checkpoint")):
        assert not any(0 <= outside["start_ns"] - step["start_ns"] < step["dur_ns"] for step in steps)


@pytest.mark.parametrize("options", [[], ["--as-torch-profiler"]])
def test_a_profiler_that_steps_beside_the_trainer_makes_no_steps(tmp_path, options):
    run, (steps,) = record(tmp_path, "profiled", options=options)
    assert [row["step"] for row in steps_of(run)] == list(range(steps))
    # Its trace has the steps that it was asked for, also where ours takes its place.
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    labels = [event for event in events if event["name"].startswith("ProfilerStep#") and event.get("ph") == "X"]
    assert [label["name"] for label in sorted(labels, key=lambda label: label["ts"])] == [
        "ProfilerStep#2",
        "ProfilerStep#3",
    ]
    optimizers = [event["ts"] for event in events if event["name"] == "Optimizer.step#AdamW.step"]
    for label in labels:
        assert sum(label["ts"] <= at < label["ts"] + label["dur"] for at in optimizers) == len(optimizers) // 2 == 1


def test_a_trainer_after_one_that_failed_counts_on(tmp_path):
    run, (failed, steps) = record(tmp_path, "raise")
    assert (failed, steps) == (3, 6)
    assert [row["step"] for row in steps_of(run) if row["is_complete"]] == list(range(9))
    found = runs.findings(run)
    assert [example.partition(": ")[2] for example in found["capture.step_failed"]["examples"]] == [
        "step 3: RuntimeError"
    ]
    # Steps begin behind the label of an evaluation.
    assert "import.overlapping_slices" not in found


def test_what_trl_measures_is_labelled(tmp_path):
    program = runs.forked(PROGRAM.with_name("grpo_job.py"))
    told = runs.stepscope("record", "-o", tmp_path / "run", "--", *program, cwd=tmp_path)
    assert json.loads(told.stdout.splitlines()[-1]) == [2]
    assert "capture.framework_refused" not in runs.findings(tmp_path / "run")
    assert [row["step"] for row in steps_of(tmp_path / "run")] == [0, 1]
    rows = runs.rows(tmp_path / "run")
    labels = {row["name"] for row in rows if row["kind"] == "label" and row["name"].startswith("GRPOTrainer.")}
    names = ("transformers.generate", "reward", "compute_loss", "_calculate_rewards")
    assert labels >= {f"GRPOTrainer.{name}" for name in names}
    pairs = runs.with_parents(rows)
    assert [parent["name"] for parent, row in pairs if row["name"] == "aten::erfinv"] == ["GRPOTrainer.reward"] * 2
