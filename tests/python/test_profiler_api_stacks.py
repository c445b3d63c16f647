"""Calls of Python among events, stacks of events, averages and files of them; those of ``torch.profiler`` are the oracle.

What differs from torch.profiler, and why:

- Stacks are there with ``with_stack=True`` alone; there, events have them only with ``verbose=True`` as well.
- Functions that were entered before recording began have the line of their ``def``; there, the line that ran then. So
  what is compared here lies in a function that is called while recording. The same holds for a generator that goes on.
- Built-in methods are named by the class of the object that they were first called on in the process; there, in the
  recording, and with its address.
- Of the profilers' own functions, torch.profiler lists its own, and those of ours that it sees.
"""

import itertools
import re
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
import stepscope
import torch
import torch.profiler
from stepscope.profiler import ProfilerActivity, _exports, profile, record_function, schedule

CPU = [ProfilerActivity.CPU]
VERBOSE = torch.profiler._ExperimentalConfig(verbose=True)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(self.norm(x))) + x


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


MODEL = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(8, 2))
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.01)


def descend(depth):
    return torch.ones(8).sum() if depth == 0 else descend(depth - 1)


def step():
    """Modules, labels, functions that call themselves, Python called by C and by the backward pass, an optimizer."""
    OPTIMIZER.zero_grad()
    with torch.profiler.record_function("forward"):
        y = Twice.apply(MODEL(torch.ones(4, 8)))
    loss = y.sum() + descend(3)
    loss.backward()
    OPTIMIZER.step()
    return sorted([2.0, 1.0], key=lambda number: torch.full((), number).item())


def recorded(kind, **options):
    with kind(activities=CPU, with_stack=True, **options) as prof:
        step()
    return prof


@pytest.fixture(scope="module")
def theirs():
    step()
    return recorded(torch.profiler.profile, experimental_config=VERBOSE)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    step()
    return recorded(profile, run=tmp_path_factory.mktemp("stacks") / "run")


def name_of(frame):
    # A generator has one line here, there the one from which it goes on.
    frame = re.sub(r"\(\d+\): <genexpr>", ": <genexpr>", frame)
    return re.sub(r" of \S+ object( at 0x[0-9a-f]+)?>", ">", frame)


def inside(stack):
    """The functions of a stack up to the step; None when it is not in the step."""
    names = [name_of(frame) for frame in stack]
    steps = [at for at, name in enumerate(names) if re.fullmatch(r".*test_profiler_api_stacks\.py\(\d+\): step", name)]
    return tuple(names[: steps[0] + 1]) if steps else None


def of_step(events):
    # Once something was recorded, torch.profiler sees what we do after a step of an optimizer.
    is_ours = [any("stepscope/" in frame for frame in [event.name, *event.stack]) for event in events]
    return [event for event, own in zip(events, is_ours) if not own and inside(event.stack) is not None]


def parent_of(event):
    return event.cpu_parent and name_of(event.cpu_parent.name)


def test_the_same_calls_and_operators_have_the_same_stacks_and_parents(theirs, ours):
    def known(event):
        kind = (event.activity_type, event.is_python_function, event.scope, event.is_user_annotation)
        return (name_of(event.name), kind, inside(event.stack), parent_of(event), event.python_module_id)

    expected = [known(event) for event in of_step(theirs.events())]
    assert [known(event) for event in of_step(ours.events())] == expected
    kinds = Counter(kind for _, (kind, *_), *_ in expected)
    assert kinds["cpu_op"] > 50 and kinds["python_function"] > 200 and kinds["user_annotation"] >= 3
    modules = [name for name, *_ in expected if name.startswith("nn.Module: ")]
    assert modules.count("nn.Module: Block_1") == 1 and "nn.Module: Linear_2" in modules


def test_calls_have_numbers_and_those_of_their_callers(theirs, ours):
    def pairs(events):
        names = {event.python_id: name_of(event.name) for event in events if event.is_python_function}
        assert set(names) == set(range(1, len(names) + 1)) or len(names) == len(set(names))
        return Counter(
            (name_of(event.name), names.get(event.python_parent_id))
            for event in of_step(events)
            if event.is_python_function
        )

    assert pairs(ours.events()) == pairs(theirs.events())
    for events in (ours.events(), theirs.events()):
        calls = [event for event in events if event.is_python_function]
        assert calls[0].python_parent_id == -1 and {event.id for event in calls} == {0}
        others = [event for event in events if not event.is_python_function]
        assert {(event.python_id, event.python_parent_id, event.python_module_id) for event in others} == {(-1, -1, -1)}


def test_what_backward_runs_has_the_stack_of_its_forward_operator(theirs, ours):
    for prof in (theirs, ours):
        (node,) = [event for event in prof.events() if event.name == "ReluBackward0"][:1]
        assert node.stack[0].startswith("<built-in method relu of type object") and ": forward" in node.stack[1]


def test_without_verbose_torch_has_no_stacks(ours):
    """Its calls are the same; only what is said of them in stacks is missing."""
    plain = recorded(torch.profiler.profile)
    assert not any(event.stack for event in plain.events())
    counts = Counter(name_of(event.name) for event in of_step(ours.events()))
    found = Counter(name_of(event.name) for event in plain.events())
    assert not counts - found


@pytest.mark.parametrize("frames", [1, 3, 100])
def test_averages_are_told_apart_by_the_innermost_functions(theirs, ours, frames):
    """[key_averages(group_by_stack_n=…)]"""

    def counts(averages):
        found = Counter()
        for average in averages:
            stack = inside(average.stack) or tuple(map(name_of, average.stack))
            found[name_of(average.key), stack] += average.count
        return found

    quick = ours.key_averages(group_by_stack_n=frames)
    expected = ours.events().key_averages(group_by_stack_n=frames)
    assert len(quick) == len(expected)
    for one, other in zip(quick, expected):
        assert (one.key, one.stack, one.count) == (other.key, other.stack, other.count)
        assert one.self_cpu_time_total == pytest.approx(other.self_cpu_time_total, abs=1e-6)
        assert (one.scope, one.is_user_annotation) == (other.scope, other.is_user_annotation)
    assert max(len(average.stack) for average in quick) <= frames
    of_ours, of_theirs = counts(quick), counts(theirs.key_averages(group_by_stack_n=frames))
    same = {key: count for key, count in of_theirs.items() if key[0].startswith(("aten::", "nn.Module: "))}
    assert len(same) > 30 and {key: of_ours[key] for key in same} == same


def test_the_table_has_a_column_of_sources(ours):
    table = ours.key_averages(group_by_stack_n=2).table(row_limit=-1)
    assert "Source Location" in table
    (at,) = [number for number, line in enumerate(table.splitlines()) if line.split()[:1] == ["aten::addmm"]][:1]
    rows = table.splitlines()[at : at + 2]
    assert rows[0].endswith("<built-in function linear>".ljust(75) + "  ") and ": forward" in rows[1]
    assert "Source Location" not in ours.key_averages().table()


def test_stacks_are_written_as_the_list_of_events_writes_them(ours, tmp_path):
    """[test_export_stacks]"""
    for metric in ("self_cpu_time_total", "self_cuda_time_total"):
        ours.export_stacks(str(tmp_path / "quick"), metric)
        ours.events().export_stacks(str(tmp_path / "slow"), metric)
        quick = (tmp_path / "quick").read_text()
        slow = (tmp_path / "slow").read_text()
        # The slow one takes children's microseconds off as floats, and rounds what is left down.
        pairs = list(zip(quick.splitlines(), slow.splitlines()))
        assert all(one.rpartition(" ")[0] == other.rpartition(" ")[0] for one, other in pairs)
        assert all(abs(int(one.rpartition(" ")[2]) - int(other.rpartition(" ")[2])) <= 1 for one, other in pairs)
        assert len(quick.splitlines()) == len(slow.splitlines())
        assert bool(pairs) == (metric == "self_cpu_time_total")
    with pytest.raises(ValueError, match="metric should be one of"):
        ours.export_stacks(str(tmp_path / "x"), "count")
    with pytest.raises(FileNotFoundError):
        ours.export_stacks(str(tmp_path / "no" / "such"))


def test_a_whole_number_of_microseconds_is_written_as_such(tmp_path):
    """Of floats, 2.139 less 0.139 is a little less than 2."""
    event = SimpleNamespace(stack=["inner", "outer"], self_cpu_time_total=2.139 - 0.139)
    assert event.self_cpu_time_total < 2
    _exports.write_stacks([event], tmp_path / "stacks", "self_cpu_time_total")
    assert (tmp_path / "stacks").read_text() == "outer;inner 2\n"


def test_calls_that_began_before_a_cycle_are_around_what_it_records(tmp_path):
    """Also in the second cycle, and with only those calls that are around operators."""

    def train(prof):
        for _ in range(6):
            torch.erfinv(torch.ones(3))
            prof.step()

    plan = schedule(wait=1, warmup=1, active=1, repeat=2)
    for with_stack in (True, "ops"):
        stacks = []
        options = {"run": tmp_path / str(with_stack), "on_trace_ready": lambda prof: stacks.append(prof.events())}
        with profile(with_stack=with_stack, schedule=plan, **options) as prof:
            train(prof)
        assert len(stacks) == 2
        for events in stacks:
            (event,) = [event for event in events if event.name == "aten::erfinv"]
            names = [frame.rpartition(": ")[2] for frame in event.stack]
            assert names[:2] == ["<built-in method erfinv of type object>", "train"]
            assert names[2] == "test_calls_that_began_before_a_cycle_are_around_what_it_records"
            callers = [parent.name for parent in ancestors(event)]
            # A function that does nothing but call itself is one event.
            calls = [frame for frame, _ in itertools.groupby(event.stack)]
            assert [frame for frame in callers if frame in event.stack] == calls


def ancestors(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event


def test_functions_of_the_recorder_are_no_events(tmp_path):
    new = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    with profile(with_stack=True, run=tmp_path / "run") as prof:
        with record_function("label"):
            new(torch.ones(2, 8))
    names = [event.name for event in prof.events()]
    assert not [name for name in names if "stepscope/" in name or "named_modules" in name]
    assert "label" in names and "nn.Module: Linear_0" in names


def test_what_is_called_through_the_recorder_is_the_programs(tmp_path):
    """Data sets, decorated functions and generators stand in stacks below the code that uses them."""

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return torch.full((), index)

    @record_function("decorated")
    def decorated():
        return torch.erfinv(torch.ones(1))

    @stepscope.annotate("values")
    def values():
        yield torch.digamma(torch.ones(1))

    def ready(_):
        torch.lgamma(torch.ones(1))

    cpu = [torch.profiler.ProfilerActivity.CPU]
    with profile(with_stack=True, run=tmp_path / "run") as prof:
        list(torch.utils.data.DataLoader(Data()))
        decorated()
        list(values())
        with torch.profiler.profile(
            activities=cpu, schedule=torch.profiler.schedule(wait=0, warmup=1, active=1), on_trace_ready=ready
        ) as theirs:
            theirs.step()
            theirs.step()
    stacks = {event.name: [frame.rpartition(": ")[2] for frame in event.stack] for event in prof.events()}
    own = "test_what_is_called_through_the_recorder_is_the_programs"
    assert stacks["aten::full"][1:3] == ["__getitem__", "<listcomp>" if sys.version_info < (3, 12) else "fetch"]
    assert stacks["aten::erfinv"][1:3] == ["decorated", own]
    assert stacks["aten::digamma"][1:4] == ["values", "<built-in method send of generator object>", own]
    around = stacks["aten::lgamma"]
    assert around[1] == "ready" and around[around.index("step") + 1] == own


def test_calls_are_there_when_they_are_asked_for(tmp_path):
    """Modules are recorded in any case, but are no events without stacks."""
    for options in ({}, {"with_modules": True}):
        with profile(run=tmp_path / f"run{len(options)}", **options) as prof:
            MODEL(torch.ones(2, 8))
        assert not [event.name for event in prof.events() if event.is_python_function or event.stack]
    with profile(run=tmp_path / "few", with_stack="ops") as prof:
        abs(-1)
        MODEL(torch.ones(2, 8))
    names = {event.name for event in prof.events()}
    assert "<built-in function linear>" in names and "<built-in function abs>" not in names
