"""What ``stepscope.profiler`` writes: Chrome traces, files for TensorBoard, stacks."""

import gzip
import json
import os
import socket

import pytest
import runs
import torch
from stepscope.profiler import EventList, FunctionEvent, profile, record_function, schedule, tensorboard_trace_handler

X = torch.ones(4, 4)


def rows_of(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt") as file:
        return json.load(file)["traceEvents"]


def slices_of(path):
    return [row for row in rows_of(path) if row["ph"] == "X" and row["cat"] != "Trace"]


def test_a_trace_is_written_as_often_as_asked(tmp_path):
    """[test_profiler_tracing; an export twice, which torch.profiler refuses]"""
    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(X)
    for name in ("a.json", "a.json.gz", "a.json"):
        prof.export_chrome_trace(str(tmp_path / name))
    assert rows_of(tmp_path / "a.json") == rows_of(tmp_path / "a.json.gz")
    (row,) = slices_of(tmp_path / "a.json")
    assert (row["name"], row["cat"], row["pid"]) == ("aten::erfinv", "cpu_op", os.getpid())
    assert json.loads((tmp_path / "a.json").read_text())["traceName"] == str(tmp_path / "a.json")


def test_an_empty_trace_is_one(tmp_path):
    """[test_profiler_tracing: empty]"""
    with profile(run=tmp_path / "run") as prof:
        pass
    prof.export_chrome_trace(str(tmp_path / "empty.json"))
    assert slices_of(tmp_path / "empty.json") == []


def test_each_cycle_has_its_own_trace(tmp_path):
    def save(prof):
        prof.export_chrome_trace(str(tmp_path / f"{prof.step_num}.json"))

    with profile(schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=save, run=tmp_path / "run") as prof:
        for number in range(6):
            with record_function(f"label {number}"):
                torch.erfinv(X)
            prof.step()
    names = {name: [row["name"] for row in slices_of(tmp_path / f"{name}.json")] for name in (3, 6)}
    assert names == {
        3: ["ProfilerStep#2", "label 2", "aten::erfinv"],
        6: ["ProfilerStep#5", "label 5", "aten::erfinv"],
    }


def test_the_trace_has_what_the_events_have(tmp_path):
    """[TestProfilerEventsParity, test_basic_chrome_trace] Names, times and threads are equal."""
    with profile(run=tmp_path / "run", schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(3):
            with record_function("label"):
                torch.nn.functional.linear(X, X).sum()
            prof.step()
    prof.export_chrome_trace(tmp_path / "trace.json")
    rows = slices_of(tmp_path / "trace.json")
    zero = rows[0]["ts"] - prof.events()[0].time_range.start
    found = [(row["name"], row["cat"], round((row["ts"] - zero) * 1000), round(row["dur"] * 1000)) for row in rows]
    expected = [
        (
            event.trace_name,
            event.activity_type,
            round(event.time_range.start * 1000),
            round(event.time_range.elapsed_us() * 1000),
        )
        for event in prof.events()
    ]
    # What does nothing but call itself is one event, but two rows.
    assert set(expected) <= set(found)
    assert {name for name, *_ in set(found) - set(expected)} <= {"aten::transpose", "aten::sum"}
    assert {row["tid"] for row in rows} == {event.device_resource_id for event in prof.events()}


def test_forward_and_backward_are_joined_by_arrows(tmp_path):
    """[test_profiler_fwd_bwd_link] Times of both ends are those of operators."""
    x = torch.ones(2, 2, requires_grad=True)
    with profile(run=tmp_path / "run") as prof:
        (x.exp() * 2).sum().backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    rows = rows_of(tmp_path / "trace.json")
    ends = {phase: [row for row in rows if row.get("cat") == "fwdbwd" and row["ph"] == phase] for phase in "sf"}
    times = {row["ts"]: row["name"] for row in rows if row["ph"] == "X"}
    assert len(ends["s"]) == len(ends["f"]) > 0
    pairs = {row["id"]: times[row["ts"]] for row in ends["s"]}
    assert {(pairs[row["id"]], times[row["ts"]]) for row in ends["f"]} >= {("aten::exp", "ExpBackward0")}


@pytest.mark.parametrize("use_gzip", [False, True])
def test_files_for_tensorboard(tmp_path, use_gzip):
    """[test_tensorboard_trace_handler] One file a cycle, named by worker and time."""
    plan = schedule(wait=1, warmup=1, active=1, repeat=3)
    for worker in (None, "worker 7"):
        folder = tmp_path / str(worker) / "below"
        handler = tensorboard_trace_handler(str(folder), worker, use_gzip=use_gzip)
        with profile(schedule=plan, on_trace_ready=handler, run=tmp_path / "run") as prof:
            for _ in range(9):
                torch.erfinv(X)
                prof.step()
        names = sorted(os.listdir(folder))
        first = worker or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        assert len(names) == 3
        for name in names:
            assert name.startswith(first + ".") and name.endswith(ending)
            assert name[len(first) + 1 : -len(ending)].isdigit()
            assert {row["name"] for row in slices_of(folder / name)} >= {"aten::erfinv"}


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    handler = tensorboard_trace_handler(str(tmp_path / "file" / "below"))
    with pytest.raises(RuntimeError, match="Can't create directory"):
        handler(None)


def test_a_file_that_cannot_be_written(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(X)
    with pytest.raises(OSError, match="cannot write"):
        prof.export_chrome_trace(str(tmp_path / "no" / "such" / "folder.json"))


def test_stacks_are_written_folded(tmp_path):
    """[test_export_stacks] The outermost first; `;`, blanks and line ends in names become `_`."""
    stacks = [["inner(1): f", "outer;x(2):\tg"], [], ["inner(1): f"]]
    events = EventList(FunctionEvent(n, "op", 1, 0.0, 5.0 * n, stack=stack) for n, stack in enumerate(stacks))
    events[0].time_range.end = 12.7
    theirs = torch.autograd.profiler_util.EventList(events)
    events.export_stacks(str(tmp_path / "ours"), "self_cpu_time_total")
    theirs.export_stacks(str(tmp_path / "theirs"), "self_cpu_time_total")
    assert (
        (tmp_path / "ours").read_text()
        == (tmp_path / "theirs").read_text()
        == ("outer_x(2):_g;inner(1):_f 12\ninner(1):_f 10\n")
    )
    for of in (events, theirs):
        with pytest.raises(ValueError, match="metric should be one of"):
            of.export_stacks(str(tmp_path / "x"), "count")
    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(X)
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "x"))


def test_a_list_of_events_is_written_too(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        with record_function('a "quoted" name'):
            torch.erfinv(X)
    prof.events().export_chrome_trace(str(tmp_path / "list.json"))
    rows = json.loads((tmp_path / "list.json").read_text())
    assert [row["name"] for row in rows] == ['a "quoted" name', "aten::erfinv"]


def test_memory_over_time_needs_what_it_is_made_of(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(X)
    with pytest.raises(ValueError, match="record_shapes=True, profile_memory=True, with_stack=True required"):
        prof.export_memory_timeline(str(tmp_path / "x.html"))


def test_below_stepscope_record_a_profiler_has_its_own_window(tmp_path):
    text = """
import json, torch
from stepscope.profiler import profile, schedule
torch.digamma(torch.zeros(4))
with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
    for step in range(6):
        torch.erfinv(torch.zeros(4))
        prof.step()
torch.digamma(torch.zeros(4))
prof.export_chrome_trace("trace.json")
print(json.dumps([[average.key, average.count] for average in prof.key_averages()]))
"""
    recorded = runs.record(tmp_path / "run", runs.script(text), cwd=tmp_path)
    assert dict(json.loads(recorded.stdout)) == {
        "ProfilerStep*": 2,
        "aten::zeros": 2,
        "aten::empty": 2,
        "aten::zero_": 2,
        "aten::erfinv": 2,
    }
    assert len(slices_of(tmp_path / "trace.json")) == 10
