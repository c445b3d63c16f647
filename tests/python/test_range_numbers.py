"""Rows of Chrome traces have the numbers of the execution trace that was recorded beside them, as in torch.profiler."""

import json

import pytest
import stepscope.profiler
import torch

X = torch.randn(8, 8, requires_grad=True)
HIDDEN = {"aten::is_leaf", "aten::output_nr", "aten::_version"}


def work():
    with stepscope.profiler.record_function("forward"):
        loss = (X @ X).relu().sum()
    loss.backward()


def rows_of(prof, path):
    prof.export_chrome_trace(str(path))
    rows = json.loads(path.read_text())["traceEvents"]
    return [row for row in rows if row.get("cat") in ("cpu_op", "user_annotation")]


def numbers_of(path):
    """By number, the names of the ranges in an execution trace."""
    found = {}
    for node in json.loads(path.read_text())["nodes"]:
        attributes = {attribute["name"]: attribute["value"] for attribute in node["attrs"]}
        if attributes.get("rf_id"):
            found[attributes["rf_id"]] = node["name"]
    return found


def observed(path):
    return stepscope.profiler.ExecutionTraceObserver().register_callback(str(path))


@pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"with_stack": True}], ids=str)
def test_rows_have_the_numbers_of_the_execution_trace(tmp_path, options):
    observer = observed(tmp_path / "nodes.json")
    with stepscope.profiler.profile(execution_trace_observer=observer, **options) as prof:
        work()
    observer.unregister_callback()
    told = numbers_of(tmp_path / "nodes.json")
    rows = rows_of(prof, tmp_path / "trace.json")
    names = [(row["args"]["Record function id"], row["name"]) for row in rows]
    assert len(names) > 10 and len({number for number, _ in names}) == len(names)
    assert {number: told.get(number) for number, _ in names} == dict(names)
    # What the execution trace has more is not listed by either profiler.
    assert {name for number, name in told.items() if number not in dict(names)} <= HIDDEN


def test_each_cycle_has_those_of_its_own(tmp_path):
    observer, seen = observed(tmp_path / "nodes.json"), []
    schedule = stepscope.profiler.schedule(wait=1, warmup=1, active=1, repeat=2)

    def keep(prof):
        rows = rows_of(prof, tmp_path / "trace.json")
        seen.append({row["args"]["Record function id"]: row["name"] for row in rows})

    with stepscope.profiler.profile(execution_trace_observer=observer, schedule=schedule, on_trace_ready=keep) as prof:
        for _ in range(6):
            work()
            prof.step()
    observer.unregister_callback()
    told = numbers_of(tmp_path / "nodes.json")
    assert len(seen) == 2 and not seen[0].keys() & seen[1].keys()
    for cycle in seen:
        ops = {number: name for number, name in cycle.items() if not name.startswith("ProfilerStep")}
        assert len(ops) > 10 and {number: told.get(number) for number in ops} == ops


def test_nobody_pays_for_numbers_without_an_execution_trace(tmp_path):
    with stepscope.profiler.profile() as prof:
        work()
    assert {row["args"]["Record function id"] for row in rows_of(prof, tmp_path / "trace.json")} == {0}
