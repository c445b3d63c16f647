"""What a step takes in ``stepscope compare``, beside what a few lines of Python count in real traces of ``torch.profiler``."""

import gzip
import json
import os
import re
from decimal import Decimal
from pathlib import Path

import pytest

# Where a machine has them: the variable, or beside the checkout.
TRACES = Path(os.environ.get("STEPSCOPE_TRACES") or Path(__file__).parents[3] / "shared" / "traces") / "kineto"
NAMES = sorted(path.name for path in TRACES.glob("*.json.gz")) if TRACES.is_dir() else []
LAUNCHES = {"cuda_runtime", "cuda_driver"}


def ns(us):
    return int(Decimal(us) * 1000)


def counted(path):
    """Steps, and of kernels that belong to one their number and time; the same of all kernels."""
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal, strict=False)["traceEvents"]
    events = [event for event in events if event.get("ph") == "X" and str(event.get("ts", "")) and "dur" in event]
    category = [str(event.get("cat", "")).lower() for event in events]
    is_step = re.compile(r"ProfilerStep#\d+").fullmatch
    steps = sorted(
        (ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]))
        for event, cat in zip(events, category)
        if is_step(str(event.get("name"))) and cat in {"user_annotation", "operator", "cpu_op"}
    )
    launched = {
        event["args"]["correlation"]: ns(event["ts"])
        for event, cat in zip(events, category)
        if (cat in LAUNCHES or cat == "runtime") and "correlation" in event.get("args", {})
    }
    inside, everything = [0, 0], [0, 0]
    for event, cat in zip(events, category):
        if cat != "kernel":
            continue
        args = event.get("args", {})
        begin = launched.get(args.get("correlation"), ns(event["ts"]))
        belongs = not steps or any(start <= begin < end for start, end in steps)
        for sums in [everything] + [inside] * belongs:
            sums[0] += 1
            sums[1] += ns(event["dur"])
    return len(steps), inside, everything


def assert_is_a_sum(told, name):
    """What the mean step of each run consists of sums to it, and its change to the difference of the means."""
    rows, [steps] = told["step_breakdown"]["results"], told["steps"]["results"]
    for value in ["a_ns", "b_ns", "change_ns"]:
        total = rows[-1][value]
        assert sum(row[value] for row in rows if row["row"] == "class") == total, (name, value)
        for class_row in [row for row in rows if row["row"] == "class"]:
            parts = [row for row in rows if row["row"] == "part" and row["class"] == class_row["class"]]
            assert sum(row[value] for row in parts) == class_row[value], (name, value, class_row["class"])
    assert [rows[-1]["a_ns"], rows[-1]["b_ns"]] == [steps["a_mean_ns"], steps["b_mean_ns"]], name
    assert rows[-1]["change_ns"] == steps["b_mean_ns"] - steps["a_mean_ns"], name


@pytest.mark.skipif(not NAMES, reason="the real traces are not here")
def test_the_difference_of_mean_steps_is_a_sum_of_classes_and_names(stepscope):
    pairs = [(a, b) for a, b in zip(NAMES, NAMES[1:]) if counted(TRACES / a)[0] and counted(TRACES / b)[0]]
    assert pairs
    for a, b in pairs:
        told = json.loads(stepscope("compare", TRACES / a, TRACES / b, "--json").stdout)
        assert_is_a_sum(told, f"{a} {b}")


@pytest.mark.skipif(not NAMES, reason="the real traces are not here")
def test_a_step_has_the_kernels_that_are_launched_in_complete_steps(stepscope):
    labelled = 0
    for name in NAMES:
        steps, inside, everything = counted(TRACES / name)
        if steps == 0:
            continue
        labelled += 1
        told = json.loads(stepscope("compare", TRACES / name, TRACES / name, "--json").stdout)
        rows = told["kernels"]["results"]
        assert told["steps"]["results"][0]["a_steps"] == steps, name
        assert sum(row["a_count_per_step"] for row in rows) == pytest.approx(inside[0] / steps), name
        # Each row is rounded to whole nanoseconds.
        assert sum(row["a_total_ns"] for row in rows) == pytest.approx(inside[1] / steps, abs=len(rows)), name
        [outside] = [row for row in told["outside_of_steps"]["results"] if row["name"] == "kernels"]
        assert_is_a_sum(told, name)
        known = [whole - part for whole, part in zip(everything, inside)]
        assert [outside["a_run_count"], outside["a_run_ns"]] == known, name
    assert labelled >= 5


def test_code_that_loses_half_of_its_step_labels_takes_as_much_a_step_as_before(stepscope, tmp_path):
    events = []
    for step in range(10):
        at = 1_000 + 100 * step
        row = {"ph": "X", "pid": 1, "tid": 1, "ts": at}
        events += [
            row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "dur": 90},
            row | {"cat": "cpu_op", "name": "aten::mm", "dur": 50},
            row | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 5, "args": {"correlation": step + 1}},
            row | {"cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 60, "dur": 40,
                   "args": {"correlation": step + 1, "device": 0, "stream": 7}},
        ]  # fmt: skip
    is_dropped = re.compile("ProfilerStep#[13579]").fullmatch
    half = [event for event in events if not is_dropped(event["name"])]
    for name, rows in {"all": events, "half": half}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
    told = json.loads(stepscope("compare", tmp_path / "all.json", tmp_path / "half.json", "--json").stdout)
    [kernel], [operator] = told["kernels"]["results"], told["operators"]["results"]
    assert (kernel["a_count_per_step"], kernel["b_count_per_step"]) == (1.0, 1.0)
    assert (kernel["change_total_ratio"], operator["change_host_self_ratio"]) == (0.0, 0.0)
    assert {row["name"]: row["b_run_count"] for row in told["outside_of_steps"]["results"]} == {
        "operators": 5,
        "kernels": 5,
    }
    codes = [finding["code"] for finding in told["steps"]["findings"]]
    assert "analysis.outside_of_steps" in codes
