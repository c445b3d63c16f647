"""``stepscope.open``: every analysis is a method that returns what the command line prints as JSON."""

import json

import pytest
import stepscope as package

EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 30},
    {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 12, "dur": 5},
]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    return path


def test_methods_are_the_analyses_of_the_command_line(trace, stepscope):
    run = package.open(trace)
    listed = stepscope("analyze").stdout
    for name in package._run._engine.analyses():
        assert name in listed
        assert name in dir(run)
        assert getattr(run, name)() == json.loads(stepscope("analyze", name, trace, "--json").stdout)


def test_operators(trace):
    results = package.open(trace).operators()["results"]
    self_ns = {row["name"]: row["host_self_ns"] for row in results}
    assert self_ns == {"aten::mm": 25_000, "aten::empty": 5_000}


def test_rank_that_is_not_there(trace):
    with pytest.raises(ValueError, match="rank 7"):
        package.open(trace).operators(rank=7)


def test_unknown_analysis(trace):
    run = package.open(trace)
    with pytest.raises(ValueError, match="operatorz"):
        run.analyze("operatorz")
    with pytest.raises(AttributeError, match="operatorz"):
        run.operatorz()


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone.json"):
        package.open(tmp_path / "gone.json")


def test_no_trace(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(ValueError, match="notes.txt"):
        package.open(path)
