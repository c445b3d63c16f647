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


def test_several_ranks(tmp_path):
    for rank in range(4):
        _file_of_rank(tmp_path / f"rank{rank}.json", rank)
    run = package.open(tmp_path)

    def ranks(asked):
        return [row["rank"] for row in run.ranks_overview(rank=asked)["results"]]

    assert ranks(None) == [0, 1, 2, 3]
    assert ranks(2) == ranks("2") == ranks([2]) == ranks(range(2, 3)) == [2]
    assert ranks(range(1, 3)) == ranks("1-2") == ranks((2, 1)) == ranks({1, 2}) == [1, 2]
    assert ranks(range(0, 4, 2)) == ranks("0,2") == [0, 2]
    assert ranks("2-9") == [2, 3]
    for wrong, said in [("3-1", "0-7 or 0,4,8-11"), ([], "0-7 or"), (-1, "0-7 or"), ([0, 4], "rank 4"), ("4-9", "4-9")]:
        with pytest.raises(ValueError, match=said):
            ranks(wrong)
    for wrong in [1.5, [0, "1"]]:
        with pytest.raises(TypeError, match="rank is"):
            ranks(wrong)


def _file_of_rank(path, rank):
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1_000_000, "dur": 5}
    info = {"rank": rank, "world_size": 4}
    path.write_text(json.dumps({"distributedInfo": info, "baseTimeNanoseconds": 0, "traceEvents": [event]}))


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
