"""``start_ns`` and ``end_ns`` of the analyses in Python: the window that the command line has."""

import json

import pytest
import stepscope as package

# The trace begins at 10 us. A kernel that is launched in the window [20 us, 60 us) runs behind it, one that is launched
# before it runs in it.
#
#   us      10   20   30   40   50   60   70
#   host    [mm     ]    [add ]      [mul]
#               ^launch 1   ^launch 2
#   device           [gemm ]         [fill]
EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 18},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 14, "dur": 2,
     "args": {"correlation": 1}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 30, "dur": 10},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 34, "dur": 2,
     "args": {"correlation": 2}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": 60, "dur": 6},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 24, "dur": 9,
     "args": {"correlation": 1, "device": 0, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "fill", "pid": 0, "tid": 7, "ts": 61, "dur": 5,
     "args": {"correlation": 2, "device": 0, "stream": 7}},
]  # fmt: skip


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    return path


def names(result):
    return {row["name"]: row["count"] for row in result["results"]}


def test_what_begins_and_what_is_launched_in_the_window(trace):
    run = package.open(trace)
    assert names(run.operators()) == {"aten::mm": 1, "aten::add": 1, "aten::mul": 1}
    assert names(run.operators(start_ns=10_000, end_ns=50_000)) == {"aten::add": 1}
    assert names(run.kernels(start_ns=10_000, end_ns=50_000)) == {"fill": 1}
    [row] = run.operators(start_ns=10_000, end_ns=50_000)["results"]
    # The launch inside it is no operator: its 2 us are the own time of the one around it.
    assert (row["host_total_ns"], row["host_self_ns"], row["device_total_ns"]) == (10_000, 10_000, 5_000)


def test_limits_are_from_the_first_on_and_before_the_last(trace):
    run = package.open(trace)
    assert names(run.operators(start_ns=20_000)) == {"aten::add": 1, "aten::mul": 1}
    assert names(run.operators(start_ns=20_001)) == {"aten::mul": 1}
    assert names(run.operators(end_ns=20_000)) == {"aten::mm": 1}
    assert names(run.operators(end_ns=20_001)) == {"aten::mm": 1, "aten::add": 1}
    assert names(run.operators(start_ns=20_000, end_ns=20_000)) == {}
    assert names(run.analyze("operators", end_ns=0)) == {}


@pytest.mark.parametrize("window", [(10_000, 50_000), (20_000, None), (None, 20_000), (-5, 0), (0, 2**63 - 1)])
def test_every_analysis_says_what_the_command_says(trace, stepscope, window):
    run = package.open(trace)
    keywords = dict(zip(("start_ns", "end_ns"), window))
    options = [f"--{key.replace('_', '-')}={value}" for key, value in keywords.items() if value is not None]
    for name in package._run._engine.analyses():
        said = json.loads(stepscope("analyze", name, trace, "--json", *options).stdout)
        assert getattr(run, name)(**keywords) == said, name


def test_a_window_that_makes_no_sense(trace):
    run = package.open(trace)
    with pytest.raises(ValueError, match="ends before it begins: start_ns is 5, end_ns is 4"):
        run.operators(start_ns=5, end_ns=4)
    with pytest.raises(TypeError, match="start_ns is 1.5, which is no whole number of nanoseconds"):
        run.operators(start_ns=1.5)
    with pytest.raises(TypeError, match="end_ns is '7'"):
        run.kernels(end_ns="7")
    with pytest.raises(ValueError, match="end_ns is 9223372036854775808, which no trace reaches"):
        run.kernels(end_ns=2**63)


def test_numbers_of_other_libraries_are_limits_too(trace):
    numpy = pytest.importorskip("numpy")
    run = package.open(trace)
    assert names(run.operators(start_ns=numpy.int64(20_001))) == {"aten::mul": 1}
