"""Runs are handed to real trackers of experiments, without a network, and are there when one looks."""

import json
import math
import os
import sqlite3
import sys
from pathlib import Path

import pytest
import runs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "trackers"
TRACKERS = ["wandb", "mlflow", "clearml", "tensorboard"]

RECORD = """
import sys, torch
import stepscope
from stepscope.profiler import profile, schedule

def record():
    with profile(schedule=schedule(wait=1, warmup=1, active=4), run="run") as prof:
        for _ in range(7):
            torch.erfinv(torch.zeros(4))
            prof.step()
    return prof
"""


def run_in(folder, program, **changes):
    return runs.execute(sys.executable, "-c", RECORD + program, cwd=folder, env=runs.environment(**changes))


def run_example(folder, name, **changes):
    """Run an example as its first line says; gives what it printed."""
    path = EXAMPLES / f"{name}.py"
    assert path.read_text().split("``")[1] == f"python examples/trackers/{name}.py"
    told = runs.execute(sys.executable, path, cwd=folder, env=runs.environment(HOME=folder, **changes))
    assert f"logged to {name.removesuffix('_log')}" in told.stdout.splitlines(), told.stderr


def numbers_of(folder):
    (run,) = folder.glob("stepscope-runs/*")
    report = json.loads(runs.report(run, "--json"))
    return {"steps": report["steps"]["count"], "step_mean_ms": report["steps"]["mean_ns"] / 1e6}


def test_each_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {f"{name}_log" for name in TRACKERS}


def test_wandb(tmp_path):
    pytest.importorskip("wandb")
    run_example(tmp_path, "wandb_log", WANDB_SILENT="true")
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    # What is sent later: the numbers as texts, between others.
    (kept,) = folder.glob("*.wandb")
    for name, value in numbers_of(tmp_path).items():
        at = kept.read_bytes().index(f"stepscope/{name}".encode())
        assert str(value).encode()[:12] in kept.read_bytes()[at : at + 100]
    (page,) = (folder / "files").glob("media/html/**/*.html")
    assert "aten::addmm" in page.read_text()


def test_mlflow(tmp_path):
    pytest.importorskip("mlflow")
    run_example(tmp_path, "mlflow_log")
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        metrics = dict(database.execute("select key, value from latest_metrics"))
    for name, value in numbers_of(tmp_path).items():
        assert metrics[f"stepscope/{name}"] == pytest.approx(value)
    files = {path.name for path in tmp_path.glob("mlruns/*/*/artifacts/stepscope/*")}
    assert files == {"report.html", "numbers.json", "stepscope.pt.trace.json.gz"}


def test_clearml(tmp_path):
    pytest.importorskip("clearml")
    # It forks while a thread of its own starts git, and then waits for that thread for five minutes: the fork has the pipe.
    (tmp_path / "clearml.conf").write_text("sdk { development { report_use_subprocess: false } }")
    changes = {"CLEARML_CONFIG_FILE": tmp_path / "clearml.conf", "CLEARML_CACHE_DIR": tmp_path / "cache"}
    run_example(tmp_path, "clearml_log", CLEARML_LOG_LEVEL="ERROR", **changes)
    stored = [path for path in tmp_path.rglob("*") if "stepscope-" in path.name or path.suffix == ".zip"]
    assert stored, sorted(tmp_path.rglob("*"))


def test_tensorboard(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run_example(tmp_path, "tensorboard_log")
    events = accumulator.EventAccumulator(str(tmp_path / "logs/stepscope")).Reload()
    for name, value in numbers_of(tmp_path).items():
        (event,) = events.Scalars(f"stepscope/{name}")
        assert math.isclose(event.value, value, rel_tol=1e-6)
    (text,) = events.Tensors(
        "stepscope/report/text_summary"
        if "stepscope/report/text_summary" in events.Tags()["tensors"]
        else "stepscope/report"
    )
    assert b"aten::addmm" in text.tensor_proto.string_val[0]
    assert (tmp_path / "logs/stepscope/stepscope.pt.trace.json.gz").exists()


def test_what_goes_wrong_does_not_fail_in_the_program(tmp_path):
    program = """
print(stepscope.log_to())
prof = record()
print(stepscope.log_to(prof))
print(stepscope.log_to(prof, "nobody"))
print(stepscope.log_to("nothing", "mlflow"))
with profile(run="other") as other:
    print(stepscope.log_to(other, "wandb"))
import os
os.environ["RANK"] = "1"
print(stepscope.log_to(prof))
"""
    told = run_in(tmp_path, program)
    assert told.stdout.splitlines() == ["None"] * 6
    for why in ("no run was recorded", "no tracker is active", "'nobody'", "nothing", "still being recorded"):
        assert why in told.stderr


@pytest.mark.parametrize("tracker", TRACKERS)
def test_files_for_a_node_without_a_network(tmp_path, tracker):
    run_in(tmp_path, "record()")
    runs.stepscope("export", "run", "--for", tracker, "-o", "out", cwd=tmp_path)
    names = {path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith("events.out")}
    trace = "stepscope.pt.trace.json" + ("" if tracker == "wandb" else ".gz")
    assert names == {"report.html", "numbers.json", trace}
    assert len(list(Path(tmp_path / "out").iterdir())) == 3 + (tracker == "tensorboard")
    told = runs.run(runs.COMMAND, "export", "run", "--for", tracker, "-o", "out", cwd=tmp_path)
    assert told.returncode != 0 and "out" in told.stderr and os.listdir(tmp_path / "out")
