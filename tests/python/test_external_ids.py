"""``External id`` of a Chrome trace is ``external_id`` in ``events()``: the two can be joined by it."""

import collections
import gc
import json
import threading

import pytest
import torch
from device_scenario import Scenario, wanted
from stepscope.profiler import profile, record_function, schedule
from torch.profiler import record_function as torch_label

OPTIONS = {
    "plain": {},
    "modules": {"with_modules": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True},
    "overloads": {"experimental_config": wanted(capture_overload_names=True)},
    "collections": {"experimental_config": wanted(record_python_gc_info=True), "with_stack": True},
}
# What a list leaves out, as PyTorch's does: what only looks, and what is called by what has its name and calls nothing else.
LEFT_OUT = {"aten::is_leaf", "aten::sum", "again"}


def on_a_thread():
    with record_function("elsewhere"):
        torch.ones(3).add_(1)


def step():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    with record_function("forward"):
        loss = model(torch.ones(4, 8)).sum()
    with torch_label("backward"):
        loss.backward()
    with torch_label("again"), torch_label("again"):
        torch.ops.aten.is_leaf(loss)
    gc.collect()
    thread = threading.Thread(target=on_a_thread)
    thread.start()
    thread.join()


def rows_of(prof, path, **options):
    prof.export_chrome_trace(str(path), **options)
    rows = json.loads(path.read_text())["traceEvents"]
    return [row for row in rows if row["ph"] == "X" and "External id" in row.get("args", {})]


def check(rows, events, are_overloads=False):
    def name_of(event):
        return f"{event.name}.{event.overload_name}" if are_overloads and event.overload_name else event.trace_name

    written = collections.Counter((row["name"], row["args"]["External id"]) for row in rows)
    listed = collections.Counter((name_of(event), event.external_id) for event in events if event.external_id)
    assert not listed - written
    assert {name.split(".")[0] for name, _ in written - listed} <= LEFT_OUT
    assert len(listed) > 15
    return {number for _, number in written}


@pytest.mark.parametrize("options", OPTIONS)
def test_ids_of_a_trace_are_those_of_events(options, tmp_path):
    """Of every profile of the process, whichever of the two is asked for first; no id is given twice."""
    used = set()
    for cycle in range(3):
        with profile(run=tmp_path / "run", **OPTIONS[options]) as prof:
            step()
        is_written_first = cycle % 2 == 0
        rows = rows_of(prof, tmp_path / "trace.json") if is_written_first else None
        events = prof.events()
        ids = check(rows or rows_of(prof, tmp_path / "trace.json"), events, options == "overloads")
        assert not ids & used
        used |= ids
        of_all = {"all_threads": True}
        both = [lambda: prof.events(**of_all), lambda: rows_of(prof, tmp_path / "trace.json", **of_all)]
        found = {ask is both[0]: ask() for ask in (both if is_written_first else reversed(both))}
        assert any(event.name == "elsewhere" for event in found[True])
        ids = check(found[False], found[True], options == "overloads")
        assert not ids & used
        used |= ids
        # Asked again they are the same.
        assert rows_of(prof, tmp_path / "trace.json", **of_all) == found[False]
        assert [event.id for event in prof.events()] == [event.id for event in events]


def test_ids_of_calls_of_python_are_those_of_events(tmp_path):
    """Collections of Python's garbage have none, as there."""
    for has_collections in (False, True):
        config = wanted(record_python_gc_info=has_collections)
        with profile(run=tmp_path / "run", with_stack=True, experimental_config=config) as prof:
            step()
        for all_threads in (False, True):
            prof.export_chrome_trace(str(tmp_path / "trace.json"), all_threads=all_threads)
            rows = [
                row["args"] | row
                for row in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
                if row.get("cat") == "python_function"
            ]
            collections_of_garbage = [row for row in rows if row["name"] == "Python GC"]
            assert bool(collections_of_garbage) == has_collections
            assert all("Python id" not in row and "Ev Idx" in row for row in collections_of_garbage)
            rows = [row for row in rows if row["name"] != "Python GC"]
            written = {row["Python id"]: (row["name"], row["Python parent id"]) for row in rows}
            assert len(written) == len(rows) > 20
            calls = [event for event in prof.events(all_threads=all_threads) if event.is_python_function]
            for event in calls:
                parent = event.python_parent_id if event.python_parent_id >= 0 else None
                assert written[event.python_id] == (event.name, parent)


def test_ids_of_steps_are_those_of_events(tmp_path):
    found = []

    def ready(prof):
        found.append((rows_of(prof, tmp_path / f"{len(found)}.json"), prof.events()))

    cycles = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(run=tmp_path / "run", schedule=cycles, on_trace_ready=ready) as prof:
        for _ in range(9):
            step()
            prof.step()
    for rows, events in found:
        assert sum(row["name"].startswith("ProfilerStep#") for row in rows) == 2
        check(rows, events)
    assert len(found) == 2


def test_labels_that_overlap_keep_their_ids(tmp_path):
    """What lies in several lanes is written from a whole trace, in another order."""
    for _ in range(2):
        with profile(run=tmp_path / "run") as prof:
            for _ in range(3):
                one, other = record_function("one"), record_function("other")
                one.__enter__()
                torch.ones(3).sin()
                other.__enter__()
                torch.ones(3).cos()
                one.__exit__(None, None, None)
                torch.ones(3).exp()
                other.__exit__(None, None, None)
            torch.ones(2)
        check(rows_of(prof, tmp_path / "trace.json"), prof.events())


def test_work_of_devices_is_joined_with_its_operator_by_the_same_ids(tmp_path):
    scenario = Scenario(tmp_path / "run", record_shapes=True)
    events = scenario.prof.events(all_threads=True)
    # On the other thread a call is around operators, which no program does.
    elsewhere = {event.id for event in events if event.thread != scenario.host[0].thread}
    rows = rows_of(scenario.prof, tmp_path / "trace.json", all_threads=True)
    for kinds in ({"cpu_op", "user_annotation"}, {"kernel", "gpu_memcpy", "gpu_memset"}, {"cuda_runtime"}):
        written = collections.Counter((row["name"], row["args"]["External id"]) for row in rows if row["cat"] in kinds)
        of_kind = [event for event in events if event.activity_type in kinds and event.external_id]
        listed = collections.Counter((event.trace_name, event.external_id) for event in of_kind)
        differ = [(name, number) for name, number in (written - listed) + (listed - written) if number not in elsewhere]
        assert {name for name, _ in differ} <= LEFT_OUT, kinds
        assert len(listed) > 10
