"""Runs are handed to real trackers of experiments, without a network, and are there when one looks."""

import json
import math
import os
import sqlite3
import sys
import zipfile
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
    return steps_of(run)


def steps_of(path):
    """Two of the numbers that a tracker gets, as the report of a run or of a trace has them."""
    steps = json.loads(runs.report(path, "--json"))["steps"]
    return {"steps": steps["count"], "step_mean_ms": steps["mean_ns"] / 1e6}


def test_each_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {f"{name}_log" for name in TRACKERS}


def test_wandb(tmp_path):
    pytest.importorskip("wandb")
    run_example(tmp_path, "wandb_log", WANDB_SILENT="true")
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    # What is sent later: numbers in the summary, files of an artifact by where they wait.
    (kept,) = folder.glob("*.wandb")
    records = list(records_of_wandb(kept))
    summary = {update.key: update.value_json for record in records for update in record.summary.update}
    for name, value in numbers_of(tmp_path).items():
        assert json.loads(summary[f"stepscope/{name}"]) == pytest.approx(value)
    (artifact,) = (record.artifact for record in records if record.HasField("artifact"))
    assert artifact.type == "profile"
    files = {file.path: file.local_path for file in artifact.manifest.contents}
    assert files.keys() == {"report.html", "stepscope.pt.trace.json"}
    assert steps_of(files["stepscope.pt.trace.json"]) == numbers_of(tmp_path)
    (page,) = (folder / "files").glob("media/html/**/*.html")
    assert "aten::addmm" in page.read_text()


def records_of_wandb(path):
    """The records of W&B's file, each after a checksum, its length and its kind."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at = path.read_bytes(), len(":W&B") + 3
    # In a longer file a record may be in parts.
    assert len(content) < 32768
    while at < len(content):
        begin = at + 7
        at = begin + int.from_bytes(content[at + 4 : at + 6], "little")
        yield Record.FromString(content[begin:at])


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
    # What ``Task.import_offline_session`` sends later.
    (session,) = tmp_path.glob("cache/offline/*.zip")
    with zipfile.ZipFile(session) as files:
        files.extractall(tmp_path / "session")
    artifacts = json.loads((tmp_path / "session/task.json").read_text())["execution"]["artifacts"]
    names = {"report.html", "numbers.json", "stepscope.pt.trace.json.gz"}
    assert {artifact["key"] for artifact in artifacts} == {f"stepscope-{name}" for name in names}
    found = {path.name: path for path in (tmp_path / "session/data").rglob("*") if path.is_file()}
    assert found.keys() == names
    assert "aten::addmm" in found["report.html"].read_text()
    assert steps_of(found["stepscope.pt.trace.json.gz"]) == numbers_of(tmp_path)
    # A line for each time that it has sent what there was.
    lines = (tmp_path / "session/metrics.jsonl").read_text().splitlines()
    values = {row["variant"]: row["value"] for line in lines for row in json.loads(line)}
    for name, value in numbers_of(tmp_path).items():
        assert values[f"stepscope/{name}"] == pytest.approx(value)


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
