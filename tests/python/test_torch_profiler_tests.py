"""What PyTorch's own tests of ``torch.profiler`` ask for on a CPU, asked of ``stepscope.profiler``.

The name of the test in PyTorch's ``test/profiler`` stands in brackets; those that are not here are beside the feature that
they are about. Where the two differ, the test says how and why.
"""

import gc
import json
import os
import threading
import time
from collections import Counter

import pytest
import runs
import torch
import torch.profiler
from stepscope.profiler import profile, schedule
from torch.profiler._trace_validator import validate_trace

Fast = torch._C._profiler._RecordFunctionFast


def slices(trace, *categories):
    categories = categories or ("cpu_op", "user_annotation")
    return [row for row in trace["traceEvents"] if row.get("ph") == "X" and row["cat"] in categories]


def backward():
    x = torch.ones(2, 2, requires_grad=True)
    (x @ x).sum().backward()


def test_only_what_the_program_runs(both):
    """[test_basic_profile, test_user_annotation] No operator of the profiler itself; a label is an annotation."""

    def work():
        with torch.profiler.record_function("my label"):
            torch.erfinv(torch.ones(3, 3))

    for _, trace in both(work):
        names = [(row["name"], row["cat"]) for row in slices(trace)]
        operators = ["aten::ones", "aten::empty", "aten::fill_", "aten::erfinv"]
        assert Counter(names) == Counter([("my label", "user_annotation"), *((name, "cpu_op") for name in operators)])


def test_a_label_with_an_argument(both):
    """[test_record_function: test_record_function] The argument is an input without sizes."""

    def work():
        with torch.profiler.record_function("outer", "1, 2, 3"):
            with torch.profiler.record_function("inner"):
                torch.ones(2)

    for prof, _ in both(work, record_shapes=True):
        shapes = {event.name: event.input_shapes for event in prof.events()}
        assert (shapes["outer"], shapes["inner"]) == ([[]], [])


def test_steps_do_not_overlap(tmp_path):
    """[test_cpu_annotation_overlap]"""
    with profile(schedule=schedule(wait=0, warmup=0, active=5, repeat=1), run=tmp_path / "run") as prof:
        for _ in range(5):
            backward()
            prof.step()
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    spans = sorted(
        (row["ts"], row["ts"] + row["dur"]) for row in slices(trace) if row["name"].startswith("ProfilerStep")
    )
    assert len(spans) == 5
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))


def test_fast_ranges(both):
    """[test_record_function_fast, test_guarded_record_function_fast, test_is_profiler_enabled]"""
    seen = []

    def work():
        seen.append(torch.autograd.profiler._is_profiler_enabled)
        for _ in range(2):
            with Fast("add"):
                torch.ones(2).add(1)
        if torch.autograd.profiler._is_profiler_enabled:
            with Fast("guarded", [torch.ones(2)], {"grid": "lambda x"}):
                pass

    (_, theirs), (_, ours) = both(work, record_shapes=True)
    assert Counter(row["name"] for row in slices(ours)) == Counter(row["name"] for row in slices(theirs))
    assert Counter(row["name"] for row in slices(ours))["add"] == 2
    assert seen == [True, True] and not torch.autograd.profiler._is_profiler_enabled
    assert not torch.autograd._profiler_enabled()


def test_what_pytorch_tells_only_its_own_profiler(both):
    """[test_profiler_op_event_kwargs, test_datapipe_*, test_profiler_type]

    PyTorch reads the arguments of fast ranges, and labels the steps of DataPipes, only where a profiler of its own is on.
    """

    def work():
        with Fast("fused", [torch.ones(2)], {"grid": "lambda x", "scope": "user_scope"}):
            pass
        list(torch.utils.data.datapipes.iter.IterableWrapper([1, 2]))
        seen.append(torch._C._autograd._profiler_type())

    seen = []
    (_, theirs), (_, ours) = both(work, record_shapes=True)
    (their_range,), (our_range,) = ([row for row in slices(of) if row["name"] == "fused"] for of in (theirs, ours))
    assert (their_range["cat"], their_range["args"]["grid"]) == ("user_annotation", "lambda x")
    assert our_range["cat"] == "cpu_op" and "grid" not in our_range["args"]
    added = Counter(row["name"] for row in slices(theirs)) - Counter(row["name"] for row in slices(ours))
    assert added and all(name.startswith("IterableWrapper") for name in added)
    assert [kind.name for kind in seen] == ["KINETO", "NONE"]


@pytest.mark.parametrize("switch", ["_set_fwd_bwd_enabled_val", "_set_record_concrete_inputs_enabled_val"])
def test_switches_of_pytorchs_profiler_are_its_own(both, switch):
    """[test_profiler_disable_fwd_bwd_link, test_concrete_inputs_profiling_toggling] Ours records the same with them."""
    switch = getattr(torch._C._profiler, switch)

    def said(recorded):
        counts = Counter(row["cat"] for row in recorded[1]["traceEvents"] if row.get("ph") in ("s", "f"))
        return counts["fwdbwd"], [
            row["args"]["Concrete Inputs"] for row in slices(recorded[1]) if row["name"] == "aten::ones"
        ]

    theirs, ours = map(said, both(backward, record_shapes=True))
    assert ours == theirs == (4, [["[2, 2]", "", "", "", "False"]])
    try:
        switch(False)
        theirs_without, ours_without = map(said, both(backward, record_shapes=True))
    finally:
        switch(True)
    assert ours_without == ours != theirs_without


def test_garbage_collections(both):
    """[test_python_gc_event] Traces have them when asked, and with stacks; the run has them in any case."""

    def work():
        torch.ones(2)
        gc.collect()
        gc.collect()

    config = torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)
    (_, theirs), (ours, traced) = both(work, with_stack=True, experimental_config=config)
    in_trace = lambda trace: [row["cat"] for row in trace["traceEvents"] if row["name"] == "Python GC"]  # noqa: E731
    found = [row for row in runs.rows(ours.run) if row["kind"] == "garbage_collection" and row["value"] == 2]
    assert len(found) == len(in_trace(theirs)) == 2
    assert in_trace(traced)[:2] == in_trace(theirs)
    _, (_, quiet) = both(work, with_stack=True)
    assert not in_trace(quiet)


def test_a_forked_process_is_another(tmp_path):
    """[test_forked_process] Its trace has its own numbers, its parent's has nothing of it."""
    text = """
import os, sys, json, torch
from stepscope.profiler import profile
def traced(name):
    with profile(run=f"{sys.argv[1]}/{name}") as prof:
        torch.ones(2).neg()
    path = f"{sys.argv[1]}/{name}.json"
    prof.export_chrome_trace(path)
    rows = [row for row in json.load(open(path))["traceEvents"] if row.get("cat") == "cpu_op"]
    assert rows and {row["pid"] for row in rows} == {row["tid"] for row in rows} == {os.getpid()}, rows
traced("parent")
child = os.fork()
if child == 0:
    traced("child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
traced("parent again")
"""
    runs.execute(*runs.new_script(text, tmp_path))


class TestThreads:
    """[test_source_multithreaded_*] Frames of threads that are there before, begin, and end while it records."""

    @pytest.mark.parametrize("begins", ["before", "inside"])
    @pytest.mark.parametrize("ends", ["inside", "after"])
    def test_each_thread_has_its_own_frames(self, tmp_path, begins, ends):
        go, has_run, may_end = (threading.Event() for _ in range(3))
        threads = [threading.Thread(target=self.outer, args=(go, has_run, may_end)) for _ in range(2)]
        if begins == "before":
            [thread.start() for thread in threads]
        with profile(run=tmp_path / "run", with_stack=True) as prof:
            if begins == "inside":
                [thread.start() for thread in threads]
            go.set()
            assert has_run.wait(30)
            if ends == "inside":
                may_end.set()
                [thread.join() for thread in threads]
            else:
                time.sleep(0.2)
        may_end.set()
        [thread.join() for thread in threads]
        rows = runs.rows(prof.run)
        found = Counter()
        for row in runs.named(rows, "aten::erfinv"):
            around = [
                call["name"].rpartition(": ")[2]
                for call in rows
                if call["kind"] == "python_call" and call["start_ns"] <= row["start_ns"] and runs.contains(call, row)
            ]
            found[row["tid"], tuple(name for name in around if name in ("outer", "inner"))] += 1
        assert [stack for _, stack in found] == [("outer", "inner")] * 2 and len({tid for tid, _ in found}) == 2

    def outer(self, go, has_run, may_end):
        go.wait(30)
        self.inner()
        has_run.set()
        may_end.wait(30)

    def inner(self):
        torch.erfinv(torch.ones(2))


def test_python_below_c_below_python(tmp_path):
    """[test_python_tracer] A function in C lasts as long as the Python that it calls."""

    def key(number):
        time.sleep(0.02)
        torch.full((), number)
        return number

    with profile(run=tmp_path / "run", with_stack=True) as prof:
        sorted([1, 2, 3, 4, 5], key=key)
    (call,) = [row for row in runs.rows(prof.run) if row["name"] == "<built-in function sorted>"]
    assert call["dur_ns"] >= 100_000_000


def test_a_run_of_many_sessions_has_numbers_of_its_own(tmp_path):
    """[test_profiler_correlation_id] No number twice, and all below 2^32."""
    for session in range(3):
        with profile(run=tmp_path / str(session)) as prof:
            backward()
        prof.export_chrome_trace(tmp_path / "trace.json")
        ids = [row["args"]["External id"] for row in slices(json.loads((tmp_path / "trace.json").read_text()))]
        assert len(set(ids)) == len(ids) > 10 and all(0 <= number < 2**32 for number in ids)


def test_pytorchs_own_check_of_traces_finds_nothing(both, tmp_path):
    """[_trace_validator] Among its rules: one backward node for each sequence number, looked for in the slice around it."""

    def work():
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()

    def is_valid(rows):
        path = tmp_path / "rows.json"
        path.write_text(json.dumps({"traceEvents": rows}, default=float))
        return validate_trace(os.fspath(path))[0]

    (_, theirs), (_, ours) = both(work, record_shapes=True)
    assert is_valid(theirs["traceEvents"]) and is_valid(ours["traceEvents"])
    engine = "autograd::engine::evaluate_function: "
    around = [row for row in slices(ours) if row["name"].startswith(engine) and "Sequence number" in row["args"]]
    assert len(around) > 10
    assert not is_valid([*ours["traceEvents"], {**around[0], "name": f"{engine}OtherBackward0"}])


def called(node):
    """A node of the event tree with what lies in it: names of operators and labels alone.

    What does nothing but call itself is one there only in ``prof.events()``, here in any case.
    """
    below = [found for child in node.children for found in called(child)]
    if [name for name, _ in below] == [node.name]:
        return below
    is_op = node.tag == torch._C._profiler._EventType.TorchOp
    return [(node.name, below)] if is_op else below


def test_the_results_under_the_names_of_kineto(tmp_path):
    """[test_profiler_tree, test_profiler: TestExperimentalUtils, test_kineto] The tree of events, and their methods."""

    def work():
        x = torch.ones(2, 2, requires_grad=True)
        with torch.profiler.record_function("label"):
            (x @ x).sum().backward()

    recorded = {}
    for kind, options in ((torch.profiler.profile, {}), (profile, {"run": tmp_path / "run"})):
        cpu = [torch.profiler.ProfilerActivity.CPU]
        with kind(activities=cpu, record_shapes=True, schedule=schedule(wait=0, warmup=1, active=1), **options) as prof:
            prof.step()
            before = time.time_ns()
            work()
        results = recorded[kind] = prof.profiler.kineto_results
        mm = next(event for event in results.events() if event.name() == "aten::mm")
        assert results.trace_start_ns() <= before <= mm.start_ns() <= mm.end_ns() <= time.time_ns()
        assert mm.duration_ns() == mm.end_ns() - mm.start_ns() > 0
        listed = next(event for event in prof.events() if event.name == "aten::mm")
        assert listed.time_range.start == pytest.approx((mm.start_ns() - results.trace_start_ns()) / 1000)
        assert listed.id == mm.correlation_id()
    theirs, ours = recorded[torch.profiler.profile], recorded[profile]

    def said(results):
        kept = ("name", "scope", "shapes", "dtypes", "is_async", "is_user_annotation", "device_type", "nbytes")
        return {str([getattr(event, name)() for name in kept]) for event in results.events()}

    def trees(results):
        return sorted(found for node in results.experimental_event_tree() for found in called(node))

    assert said(ours) <= said(theirs)
    assert trees(ours) == trees(theirs)
    theirs_methods = {name for name in dir(theirs.events()[0]) if not name.startswith("_")}
    assert theirs_methods - set(dir(ours.events()[0])) == {
        "cuda_elapsed_us", "extra_meta", "is_hidden_event", "privateuse1_elapsed_us"
    }  # fmt: skip
    assert profile().profiler is None


def test_lists_and_averages_are_of_pytorchs_classes(tmp_path):
    """Programs ask what they were given, and put events of both into one average."""
    from torch.autograd import profiler_util

    with profile(run=tmp_path / "run") as prof:
        backward()
    assert isinstance(prof.events(), profiler_util.EventList) and isinstance(
        prof.key_averages(), profiler_util.EventList
    )
    assert isinstance(prof.events()[0], profiler_util.FunctionEvent)
    assert isinstance(prof.key_averages()[0], profiler_util.FunctionEventAvg)
    average = profiler_util.FunctionEventAvg()
    for event in prof.events():
        if event.name == "aten::mm":
            average.add(event)
    assert (average.key, average.count) == ("aten::mm", 3)
