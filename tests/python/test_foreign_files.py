"""Files of other tools are refused by name, told by their content, with what to do instead."""

import gzip
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import runs
import stepscope
import torch


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace of torch.profiler."""
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        torch.ones(2).erfinv()
    prof.export_chrome_trace(str(path))
    return path


def refused(path):
    with pytest.raises(ValueError) as error:
        stepscope.open(path)
    return str(error.value)


def test_a_perfetto_trace_packed_or_not_whatever_it_is_called(trace, tmp_path):
    runs.stepscope("convert", trace, "-o", tmp_path / "a.pftrace")
    data = (tmp_path / "a.pftrace").read_bytes()
    for name, content in {"a.pftrace": data, "b.json": data, "c.gz": gzip.compress(data)}.items():
        (tmp_path / name).write_bytes(content)
        assert "found a Perfetto trace" in refused(tmp_path / name)
        assert "hint: open the file that it was made from" in refused(tmp_path / name)


def test_an_execution_trace_has_no_times(tmp_path):
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    observer.start()
    torch.ones(2).erfinv()
    observer.stop()
    observer.unregister_callback()
    said = refused(tmp_path / "et.json")
    assert "an execution trace of PyTorch, which has no times" in said and "export_chrome_trace" in said


def test_databases_say_whose_they_are(tmp_path):
    tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": "Nsight Systems",
        "rocpd_kernel_dispatch": "rocprof",
        "t": "an SQLite database",
    }
    for table, tool in tables.items():
        path = tmp_path / f"{table}.json"
        with sqlite3.connect(path) as database:
            database.execute(f"create table {table} (start integer)")
        database.close()
        assert tool in refused(path) and "stepscope record" in refused(path)


def test_reports_that_are_no_text_are_known_by_their_ending_too(tmp_path):
    (tmp_path / "report1.nsys-rep").write_bytes(bytes(range(256)) * 4)
    assert "a report of Nsight Systems" in refused(tmp_path / "report1.nsys-rep")


def test_rocprof_and_xla_are_refused_by_name(tmp_path):
    plane = b"\x08\x01\x12\x09/host:CPU\x1a\x02\x08\x01"
    files = {
        "kernels.csv": (
            b'"Kind","Agent_Id","Queue_Id","Kernel_Name"\n"KERNEL_DISPATCH",1,1,"k"\n',
            "a CSV file of rocprof",
        ),
        "results.json": (json.dumps({"rocprofiler-sdk-tool": [{"metadata": {}}]}).encode(), "JSON of rocprofv3"),
        "host.xplane.pb": (bytes([10, len(plane)]) + plane, "xplane.pb"),
    }
    for name, (content, what) in files.items():
        (tmp_path / name).write_bytes(content)
        assert what in refused(tmp_path / name) and "hint: " in refused(tmp_path / name)


def test_utf_16_is_refused_with_the_command_that_mends_it(trace, tmp_path):
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        (tmp_path / "wide.json").write_text(trace.read_text(), encoding=encoding)
        assert "UTF-16 text" in refused(tmp_path / "wide.json")
    iconv = shutil.which("iconv")
    if iconv:
        (tmp_path / "wide.json").write_text(trace.read_text(), encoding="utf-16")
        command = [iconv, "-f", "UTF-16", "-t", "UTF-8", tmp_path / "wide.json", "-o", tmp_path / "narrow.json"]
        subprocess.run(command, check=True)
        assert stepscope.open(tmp_path / "narrow.json").operators()["results"]


def test_names_cannot_command_the_terminal(tmp_path):
    name = "a\x1b]0;x\x07\u202egnp.exe\x9b31m\u2066"
    shown = r"a\x1b]0;x\x07\u202egnp.exe\x9b31m\u2066"
    row = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    bad = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": -5}
    path = tmp_path / "trace\x1b[31m\u202e.json"
    path.write_text(json.dumps({"traceEvents": [row, bad]}))
    commands = [("analyze", "operators"), ("analyze", "findings"), ("report",), ("report", "--markdown")]
    told = [runs.stepscope(*command, path).stdout for command in commands]
    told.append(runs.stepscope("convert", path, "-o", path.with_suffix(".pftrace")).stdout)
    told.append(runs.stepscope("report", tmp_path / "no\x1b[31m\u202e", code=1).stderr)
    told.append(runs.stepscope("record", "-o", tmp_path / "run\x1b[31m\u202e", "--", sys.executable, "-c", "1").stderr)
    for text in told:
        assert not any(c in text for c in "\x1b\x07\x9b\u202e\u2066"), repr(text)
    assert shown in told[0] and r"\x1b[31m\u202e" in told[-1] and r"\x1b[31m\u202e" in told[-2]


def test_doctor_asks_the_python_that_it_is_installed_in(tmp_path):
    # A python3 that is found first and has nothing.
    (tmp_path / "python3").write_text("#!/bin/sh\necho '{}'\n")
    (tmp_path / "python3").chmod(0o755)
    environment = runs.environment(PATH=f"{tmp_path}:/usr/bin:/bin")
    checks = json.loads(runs.run(runs.COMMAND, "doctor", "--json", env=environment).stdout)["checks"]
    (python,) = [check for check in checks if check["name"] == "Python"]
    assert f"({Path(sys.executable).parent}/" in python["says"]


def test_record_runs_the_python_that_it_is_installed_in_where_the_other_has_no_torch(tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\necho other\n")
    (tmp_path / "python").chmod(0o755)
    environment = runs.environment(PATH=f"{tmp_path}:/usr/bin:/bin")
    command = [
        "record",
        "-o",
        tmp_path / "run",
        "--",
        "python",
        "-c",
        "import sys, torch; torch.ones(2); print(sys.executable)",
    ]
    ended = runs.stepscope(*command, env=environment)
    folder = Path(sys.executable).parent
    assert Path(ended.stdout.strip()).parent == folder and f"running {folder}" in ended.stderr
    # What is given with its path is what runs.
    ended = runs.stepscope("record", "-o", tmp_path / "other", "--", tmp_path / "python", env=environment)
    assert ended.stdout.strip() == "other"
