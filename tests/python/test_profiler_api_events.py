"""Events, averages and tables of ``stepscope.profiler``; those of ``torch.profiler`` are the oracle."""

import os
import pickle
import shutil
import threading
import warnings
from collections import Counter

import pytest
import torch
import torch.profiler
from stepscope.profiler import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
)

CPU = [ProfilerActivity.CPU]


def step():
    """Labels, a backward pass, and operators that call themselves."""
    x = torch.ones(8, 8, requires_grad=True)
    with torch.profiler.record_function("outer"):
        with torch.profiler.record_function("inner"):
            y = torch.nn.functional.linear(x, x).relu() + torch.arange(8)
        z = torch.cat([y, y]).to(torch.float64).sum()
    z.backward()
    with torch.profiler.record_function("aten::add"):
        return torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2))


@pytest.fixture(scope="module")
def theirs():
    """The step under torch.profiler, with all that it records."""
    step()
    options = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}
    with torch.profiler.profile(activities=CPU, **options) as prof:
        step()
    return prof.events()


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    step()
    with profile(activities=CPU, run=tmp_path_factory.mktemp("events") / "run") as prof:
        step()
    return prof


def like(events, **options):
    """The same events as our own objects."""
    copies = {}
    for event in events:
        known = {name: value for name, value in vars(event).items() if not name.startswith(("cpu_", "_"))}
        known.update(cpu_memory_usage=event.cpu_memory_usage)
        for name in ("id", "name", "thread", "time_range", "kernels"):
            del known[name]
        span = event.time_range
        copies[id(event)] = FunctionEvent(event.id, event.name, event.thread, span.start, span.end, **known)
    for event in events:
        copy = copies[id(event)]
        copy.cpu_parent = copies.get(id(event.cpu_parent))
        copy.cpu_children = [copies[id(child)] for child in event.cpu_children]
    return EventList(copies.values(), **options)


TABLES = [
    {},
    {"sort_by": "self_cpu_time_total"},
    {"sort_by": "cpu_time_total", "row_limit": 3},
    {"sort_by": "count", "row_limit": -1},
    {"sort_by": "cuda_time_total"},
    {"sort_by": "self_cpu_memory_usage", "max_name_column_width": 12},
    {"max_name_column_width": None, "max_shapes_column_width": None, "max_src_column_width": None},
    {"max_shapes_column_width": 20, "max_src_column_width": 10},
    {"header": "A header"},
    {"top_level_events_only": True, "row_limit": 5},
    {"time_unit": "s"},
    {"time_unit": "ms", "header": "Both", "top_level_events_only": True},
    {"time_unit": "us"},
]


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("shown", [{}, {"profile_memory": True}], ids=str)
@pytest.mark.parametrize("grouping", [(False, 0), (True, 0), (False, 2), (True, 3)], ids=str)
def test_the_table_of_averages_is_the_same_text(theirs, table, shown, grouping):
    """[test_flops, test_override_time_units, test_event_list]"""
    expected = torch.autograd.profiler_util.EventList(theirs, **shown)
    expected._tree_built = True
    found = like(theirs, **shown)
    assert found.key_averages(*grouping).table(**table) == expected.key_averages(*grouping).table(**table)


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_table_of_events_is_the_same_text(theirs, table):
    # Few of them have a stack: without, operations stand under their own head in both.
    for events in (theirs, [event for event in theirs if not event.stack]):
        expected = torch.autograd.profiler_util.EventList(events)
        assert like(events).table(**table) == expected.table(**table)


def test_operations_stand_in_the_table(theirs):
    """[test_flops] With stacks too, where torch.profiler writes them under the head of the stacks."""
    expected = torch.autograd.profiler_util.EventList(theirs, with_flops=True)
    expected._tree_built = True
    averages = like(theirs, with_flops=True).key_averages(True)
    assert averages.table() == expected.key_averages(True).table()
    assert "Total FLOPs" in averages.table() or "Total KFLOPs" in averages.table()
    rows = like(theirs, with_flops=True).key_averages(False, 2).table(row_limit=-1).splitlines()
    (mm,) = [row for row in rows if row.split()[:1] == ["aten::mm"] or " aten::mm " in row][:1]
    assert mm.rstrip()[-1].isdigit() or mm.rstrip().endswith("--")


def test_all_attributes_of_events_and_averages_are_there(theirs, ours):
    def public(thing):
        return {name for name in dir(thing) if not name.startswith("_")}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert public(theirs[0]) - public(ours.events()[0]) == set()
        assert public(theirs.key_averages()[0]) - public(ours.key_averages()[0]) == set()
        assert public(theirs) - public(ours.events()) == set()
        for name in public(theirs[0]):
            if not callable(getattr(theirs[0], name)):
                getattr(ours.events()[0], name)


def test_what_is_not_recorded_is_as_with_torch(ours):
    """Attributes of a plain recording are equal, but for what differs from one recording to the next."""
    with torch.profiler.profile(activities=CPU) as prof:
        step()
    changes = {"time_range", "sequence_nr", "cpu_parent", "cpu_children", "fwd_thread", "id", "external_id"}
    changes |= {"flow_id", "flow_type", "flow_start"}
    expected = {(event.name, event.scope): vars(event) for event in prof.events()}
    for event in ours.events():
        for name, value in expected[(event.name, event.scope)].items():
            if name not in changes and not name.startswith("_"):
                assert getattr(event, name) == value, (event.name, name)


def test_the_same_events_in_the_same_tree(theirs, ours):
    """[test_source, test_high_level_trace] Names, parents, order; no operator of the profiler itself."""
    with torch.profiler.profile(activities=CPU) as prof:
        step()
    theirs = prof.events()

    def tree(events):
        return [(event.name, event.cpu_parent and event.cpu_parent.name, event.scope) for event in events]

    assert tree(ours.events()) == tree(theirs)
    for event in ours.events():
        assert all(child.cpu_parent is event for child in event.cpu_children)
        assert event.cpu_parent is None or event in event.cpu_parent.cpu_children
    flows = [(event.flow_id, event.flow_type, event.flow_start) for event in theirs]
    assert [(event.flow_id, event.flow_type, event.flow_start) for event in ours.events()] == flows
    assert len(set(flows)) > 3, "[test_profiler_fwd_bwd_link]"
    assert [event.is_user_annotation for event in ours.events()] == [event.is_user_annotation for event in theirs]


def test_the_same_averages(ours):
    with torch.profiler.profile(activities=CPU) as prof:
        step()
    for grouping in ((), (True,), (False, 3), (False, 0, True)):
        expected = [(average.key, average.count, average.scope) for average in prof.key_averages(*grouping)]
        assert [(average.key, average.count, average.scope) for average in ours.key_averages(*grouping)] == expected


def test_the_engine_averages_as_the_list_does(ours):
    """Two ways to one number: sums of whole nanoseconds in Rust, of events in Python."""
    quick, slow = ours.key_averages(), ours.events().key_averages()
    assert len(quick) > 20
    for one, other in zip(quick, slow):
        for name in (
            "key",
            "count",
            "scope",
            "is_user_annotation",
            "node_id",
            "input_shapes",
            "stack",
            "overload_name",
        ):
            assert getattr(one, name) == getattr(other, name), name
        for name in ("cpu_time_total", "self_cpu_time_total", "cpu_time"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-6)
    total = ours.profiler.self_cpu_time_total
    assert total == pytest.approx(quick.self_cpu_time_total) == pytest.approx(ours.events().self_cpu_time_total)
    # Self time is the time that somebody is on top.
    tops = sum(event.cpu_time_total for event in ours.events() if event.cpu_parent is None)
    assert total == pytest.approx(tops)
    assert ours.profiler.total_average().cpu_time_total == pytest.approx(slow.total_average().cpu_time_total)


def test_events_are_plain_objects(ours):
    events = ours.events()
    assert events is ours.events(), "made once"
    event = events[0]
    event.name = "renamed"
    assert ours.events()[0].key == "renamed" and "renamed" in repr(event)
    event.name = ours.events()[0].trace_name
    again = pickle.loads(pickle.dumps(events[-1]))
    assert (again.name, again.time_range.start) == (events[-1].name, events[-1].time_range.start)
    with pytest.raises(AttributeError):
        _ = event.no_such_attribute
    average = FunctionEventAvg()
    average += event
    with pytest.raises(AssertionError, match="keys to match"):
        average.add(events[-1])


def test_only_the_thread_that_records_is_shown_unless_all_are_asked_for(tmp_path):
    """[test_profile_all_threads] The run has all threads in any case."""

    def work():
        torch.digamma(torch.ones(3))

    def recorded(name, config=None):
        with profile(run=tmp_path / name, experimental_config=config) as prof:
            torch.erfinv(torch.ones(3))
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        return prof

    both = Counter(["aten::ones", "aten::empty", "aten::fill_"] * 2 + ["aten::erfinv", "aten::digamma"])
    prof = recorded("a")
    one = Counter(["aten::ones", "aten::empty", "aten::fill_", "aten::erfinv"])
    assert Counter(event.name for event in prof.events()) == one
    assert Counter(event.name for event in prof.events(all_threads=True)) == both
    assert {average.key: average.count for average in prof.key_averages(all_threads=True)} == both
    prof = recorded("b", torch.profiler._ExperimentalConfig(profile_all_threads=True))
    assert Counter(event.name for event in prof.events()) == both
    assert Counter(event.name for event in prof.events(all_threads=False)) == one
    assert len({event.thread for event in prof.events()}) == 2


def test_names_that_torch_hides_are_hidden(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        x = torch.ones(2, requires_grad=True)
        assert torch.ops.aten.is_leaf(x) and torch.ops.aten._version(x) == 0
        with torch.profiler.record_function("label", "1, 2, 3"):
            torch.erfinv(x)
        with record_function("ours", "1, 2, 3"):
            torch.digamma(x)
    names = [event.name for event in prof.events() if event.cpu_parent is None]
    assert names == ["aten::ones", "label", "ours"]


def test_a_window_has_what_began_in_it(tmp_path):
    """An operator that is open at the end is cut there."""
    prof = profile(run=tmp_path / "run")
    with record_function("before"):
        prof.start()
    label = record_function("cut").__enter__()
    prof.stop()
    label.__exit__(None, None, None)
    (event,) = prof.events()
    assert event.name == "cut"
    assert (
        0 <= event.time_range.start <= event.time_range.end <= prof._stats().profiling_window_duration_sec * 1e6 + 1e3
    )


def test_steps_are_named_with_and_without_their_number(tmp_path):
    with profile(schedule=schedule(wait=0, warmup=1, active=3, repeat=1), run=tmp_path / "run") as prof:
        for _ in range(4):
            prof.step()
    assert [event.name for event in prof.events()] == ["ProfilerStep*"] * 3
    assert [event.trace_name for event in prof.events()] == [f"ProfilerStep#{number}" for number in (1, 2, 3)]


def test_what_was_recorded_is_there_after_the_run_was_compacted(tmp_path):
    import runs

    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(torch.ones(3))
    runs.stepscope("recover", prof.run)
    assert not (tmp_path / "run" / "raw").exists()
    assert [average.key for average in prof.key_averages()] == [
        "aten::ones",
        "aten::empty",
        "aten::fill_",
        "aten::erfinv",
    ]


@pytest.mark.parametrize("is_waited_for", [False, True], ids=["at once", "after it was compacted"])
def test_what_was_recorded_is_there_after_the_run_was_deleted(tmp_path, is_waited_for):
    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(torch.ones(3))
    if is_waited_for:
        import runs

        runs.stepscope("recover", prof.run)
    while (tmp_path / "run").exists():
        # The compaction that began with the end may be writing.
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
    assert [event.name for event in prof.events()][-1] == prof.key_averages()[-1].key == "aten::erfinv"
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert "aten::erfinv" in (tmp_path / "trace.json").read_text()


def test_what_cannot_be_read_is_an_error(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(torch.ones(3))
    os.close(prof.profiler._windows[0]._kept._descriptor)
    while (tmp_path / "run").exists():
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
    with pytest.raises(RuntimeError, match="cannot read the capture"):
        prof.events()


def test_the_memory_of_each_operator_is_the_same(tmp_path):
    """[test_memory_profiler] Allocated less freed, with and without what operators inside have."""
    step()
    with torch.profiler.profile(activities=CPU, profile_memory=True) as theirs:
        step()
    with profile(activities=CPU, profile_memory=True, run=tmp_path / "run") as ours:
        step()

    def memory(averages):
        return {(each.key, each.scope): (each.cpu_memory_usage, each.self_cpu_memory_usage) for each in averages}

    assert memory(ours.key_averages()) == memory(theirs.key_averages())
    assert memory(ours.events().key_averages()) == memory(theirs.key_averages())
    assert any(used > 0 for used, _ in memory(ours.key_averages()).values())
    head = ours.key_averages().table().splitlines()[1]
    assert "CPU Mem" in head and head.split() == theirs.key_averages().table().splitlines()[1].split()


def test_operators_are_told_apart_by_their_shapes(tmp_path):
    """[test_profiler_op_event_args, test_profiler_strides]"""
    step()
    with torch.profiler.profile(activities=CPU, record_shapes=True) as theirs:
        step()
    with profile(activities=CPU, record_shapes=True, run=tmp_path / "run") as ours:
        step()

    def groups(averages):
        return [(each.key, each.input_shapes, each.count) for each in averages]

    assert groups(ours.key_averages(group_by_input_shape=True)) == groups(theirs.key_averages(True))
    assert groups(ours.events().key_averages(True)) == groups(theirs.key_averages(True))
    assert groups(ours.key_averages()) == groups(theirs.key_averages())
    names = ("input_shapes", "structured_input_shapes", "structured_input_strides", "input_dtypes", "kwinputs")
    for one, other in zip(ours.events(), theirs.events()):
        for name in names:
            assert getattr(one, name) == getattr(other, name), (one.name, name)
