"""``stepscope.open``: every analysis is a method that returns what the command line prints as JSON."""

import json
from pathlib import Path

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


@pytest.mark.parametrize("part", [{}, {"rank": 1}, {"rank": "0-1", "step": 3}])
def test_the_report_is_that_of_the_command_line(stepscope, part):
    run = Path(__file__).parents[1] / "fixtures" / "ddp-cpu"
    words = [word for name, value in part.items() for word in (f"--{name}", str(value))]
    report = package.open(run).report(**part)
    assert report == json.loads(stepscope("report", run, *words, "--json").stdout)
    assert report["verdict"] and report["coverage"]
    with pytest.raises(ValueError, match="rank 7"):
        package.open(run).report(rank=7)


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


def test_files_are_joined_as_asked(tmp_path):
    for worker in range(2):
        _file_of_rank(tmp_path / f"worker{worker}.json", 7)
        text = (tmp_path / f"worker{worker}.json").read_text()
        (tmp_path / f"worker{worker}.json").write_text(text.replace("distributedInfo", "ignored"))

    with pytest.raises(ValueError, match='align is "off": use auto, base, collectives or none'):
        package.open(tmp_path, align="off")
    with pytest.raises(ValueError, match="rank_from"):
        package.open(tmp_path, rank_from="(")
    with pytest.raises(ValueError, match="rank 5"):
        package.open(tmp_path, offsets={5: 1})
    run = package.open(tmp_path, rank_from=r"worker(\d)", offsets={1: 2_000})
    assert run.operators()["run"]["ranks"] == [0, 1]
    assert [len(run.operators(end_ns=end_ns)["results"]) for end_ns in (0, 1_000)] == [0, 1]
    assert run.operators(end_ns=1_000)["results"][0]["count"] == 1, "rank 1 begins 2 µs after rank 0"
    assert run.operators(end_ns=2_001)["results"][0]["count"] == 2


def test_events_that_do_not_fit_into_memory(tmp_path):
    for rank in range(2):
        _file_of_rank(tmp_path / f"rank{rank}.json", rank)
    run = package.open(tmp_path, memory=1)
    with pytest.raises(ValueError, match=r"1 B allowed\nhint: .*: stepscope\.open\(…, memory=1 \* 2\*\*30\)$"):
        run.critical_path_ranks()


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
