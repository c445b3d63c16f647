"""Results as other libraries take them: dicts, Arrow, pandas, polars."""

import inspect
import json

import duckdb
import pandas
import polars
import pyarrow
import pytest
import stepscope as package

EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 30},
    {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 12, "dur": 5},
]
SELF_NS = {"aten::mm": 25_000, "aten::empty": 5_000}


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    return package.open(path).operators()


def test_a_result_reads_like_a_dict(result):
    plain = result.to_dict()
    assert type(plain) is dict and result == plain and plain == result and dict(result) == plain
    assert list(result) == list(result.keys()) == list(plain) and len(result) == len(plain)
    assert "results" in result and "rows" not in result and result.get("rows", 7) == 7
    assert json.loads(result.to_json()) == plain
    assert "operators" in repr(result) and "2 rows" in repr(result)
    plain["results"].clear()
    assert len(result["results"]) == 2


def test_tables_have_the_rows_of_the_dict(result):
    rows = result["results"]
    for table in (result.to_arrow(), pyarrow.table(result)):
        assert table.to_pylist() == rows
        assert table.schema.metadata[b"stepscope.analysis"] == b"operators"
    assert result.to_polars().to_dicts() == polars.DataFrame(result).to_dicts() == rows
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert dict(zip(frame["name"], frame["host_self_ns"])) == SELF_NS
    operators = result.to_arrow()
    assert (
        dict(duckdb.sql("SELECT name, host_self_ns FROM operators").fetchall()) == SELF_NS and operators.num_rows == 2
    )


def test_no_answer_is_null_and_an_empty_result_keeps_its_columns(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": EVENTS}))
    run = package.open(path)
    kernels = run.kernels().to_arrow()
    assert kernels.num_rows == 0 and "total_ns" in kernels.column_names
    steps = run.step_breakdown().to_arrow().column("step")
    assert steps.null_count == 1


def test_a_stream_can_be_taken_or_left(result):
    for _ in range(50):
        result.__arrow_c_stream__()
        assert pyarrow.table(result).num_rows == 2


def test_methods_are_documented_by_their_analyses(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": EVENTS}))
    run = package.open(path)
    for name in dir(run):
        if name in package._run._engine.analyses():
            method = getattr(run, name)
            assert method.__name__ == name
            assert method.__doc__.startswith(run.analyze(name)["definition"][:40])
            assert all(f"{heading}\n---" in method.__doc__ for heading in ("Units", "Source", "Edge cases"))
            keywords = ["rank", "step", "start_ns", "end_ns", "group_by", "compat", "bucket_ms", "depth", "top"]
            assert list(inspect.signature(method).parameters) == keywords
