"""Everything at once: the same seeded training step by torch.profiler and by Stepscope, each with all its options.

The same program runs three times: under torch.profiler, under ``stepscope.profiler``, and under ``stepscope record``.
What differs from torch.profiler, and why:

- ``DataLoader.fetch`` is a label of ours, around the preparation of a batch.
- Autograd has counted further in a process that Stepscope has probed: numbers are compared from the smallest one on.
- torch.profiler copies the number and the forward thread of a backward node to the slice around it, which has none, and
  leaves out the forward thread of nodes that have no number, such as AccumulateGrad.
- The lines of functions that were entered before recording, the addresses of methods: see ``test_stacks``.
- Labels have no stack of their own: see ``test_stacks``.
- The function that sets the label around batches stands in stacks: it is Python too.
- ``events()`` has an operator that does nothing but call itself once; the run has both.
"""

import json
import re
from collections import Counter, defaultdict
from types import SimpleNamespace

import pytest
import runs
from test_parity import none_below_0, numbers_by_name, without_copies
from test_shapes import slices
from test_stacks import class_of, with_stacks, without_chance

OUR_LABEL = "DataLoader.fetch"
# Members of events that are equal one by one, in the same order.
EQUAL = (
    "name scope is_user_annotation is_async count flow_id flow_type flow_start input_shapes structured_input_shapes "
    "structured_input_strides input_dtypes kwinputs cpu_memory_usage concrete_inputs flops"
).split()
# The same step as the program's own schedule has.
RECORD = ("record", "--shapes", "--memory", "--stacks", "--schedule", "wait=3,active=1,repeat=1")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    printed = [runs.execute(*program(kind, folder)).stdout for kind in ("torch", "stepscope")]
    command = folder / "command"
    printed.append(runs.stepscope(*RECORD, "-o", command, "--", *program("nothing", folder)).stdout)
    theirs, ours = (json.loads((folder / f"{kind}.json").read_text()) for kind in ("torch", "stepscope"))
    rows = {"api": rows_of(folder / "run"), "command": rows_of(command)}
    return SimpleNamespace(folder=folder, printed=printed, theirs=theirs, ours=ours, command=command, rows=rows)


def rows_of(run):
    """The rows of a run; an operator that does nothing but call itself is one."""
    rows = runs.rows(run)
    pairs = runs.with_parents([row for row in rows if is_op(row)])
    children = Counter(id(parent) for parent, _ in pairs)
    inner = {id(row) for parent, row in pairs if parent and parent["name"] == row["name"] and children[id(parent)] == 1}
    return [row for row in rows if id(row) not in inner]


def program(kind, folder):
    return runs.program("all_options.py", kind, folder)


def events(recorded):
    """Both lists without our own label, what it holds given to what is around it."""
    ours = [event for event in recorded.ours["events"] if event["name"] != OUR_LABEL]
    (label,) = [event for event in recorded.ours["events"] if event["name"] == OUR_LABEL]
    for event in ours:
        if event["parent"] == OUR_LABEL:
            event["parent"] = label["parent"]
    return recorded.theirs["events"], ours


def test_the_program_computes_the_same(recorded):
    assert len(set(recorded.printed)) == 1


@pytest.mark.parametrize("member", [*EQUAL, "parent"])
def test_events_are_equal_one_by_one(recorded, member):
    theirs, ours = events(recorded)
    assert [event[member] for event in ours] == [event[member] for event in theirs]
    assert len(theirs) > 1500 and len({str(event[member]) for event in theirs}) >= (1 if member in CONSTANT else 2)


# What is the same for all events of a CPU.
CONSTANT = ("is_async", "count", "kwinputs")


def test_sequence_numbers_and_forward_threads(recorded):
    theirs, ours = (
        [
            {**event, "sequence_number": none_below_0(event["sequence_nr"]), "forward_thread": event["fwd_thread"]}
            for event in listed
        ]
        for listed in events(recorded)
    )
    theirs, ours = without_copies(theirs), without_copies(ours)
    assert numbers_by_name(ours) == numbers_by_name(theirs)
    joined = [event["name"] for event in theirs if event["forward_thread"]]
    assert [
        event["name"] for event in ours if event["forward_thread"] and event["sequence_number"] is not None
    ] == joined
    assert len(joined) > 50


def test_forward_operators_and_their_backward_nodes(recorded):
    theirs, ours = (pairs_of_flows(listed) for listed in events(recorded))
    assert ours == theirs
    assert theirs["aten::addmm", "AddmmBackward0"] == 7


def pairs_of_flows(listed):
    """(forward, backward) by the arrows that join them."""
    ends = defaultdict(dict)
    for event in listed:
        if event["flow_id"]:
            ends[event["flow_id"]][bool(event["flow_start"])] = event["name"]
    return Counter((end[True], end[False]) for end in ends.values())


def test_traces_have_the_same_inputs(recorded):
    """With the values of numbers, which stand in traces."""
    theirs, ours = (Counter(slices(recorded.folder / f"{kind}-trace.json")) for kind in ("torch", "stepscope"))
    assert not theirs - ours
    assert [name for name, *_ in (ours - theirs).elements()] == [OUR_LABEL]
    assert any("0.001" in str(values) for _, _, _, _, values, _ in theirs)


@pytest.mark.parametrize("how", ["api", "command"])
class TestRun:
    """The run on disk, recorded by the program itself or by the command."""

    def test_the_same_operators_in_each_other(self, recorded, how):
        theirs, _ = events(recorded)
        found = Counter()
        for parent, row in runs.with_parents([row for row in recorded.rows[how] if is_op(row) and not is_step(row)]):
            found[parent and parent["name"], row["name"]] += 1
        # Only torch.profiler has a label of the whole step.
        theirs = Counter((no_step(event["parent"]), event["name"]) for event in theirs if not is_step(event))
        assert found == theirs

    def test_the_same_allocations_and_frees(self, recorded, how):
        sizes = [row["bytes"] for row in recorded.rows[how] if row["kind"] == "memory"]
        theirs = recorded.theirs["allocations"]
        assert len(theirs) > 500
        assert sizes == theirs

    def test_the_same_stacks_and_modules(self, recorded, how):
        listed, _ = events(recorded)
        operators = [event for event in listed if not event["is_user_annotation"]]
        calls = [(event["name"], [call for call in event["calls"] if not is_module(call)]) for event in operators]
        modules = [
            (event["name"], [class_of(call) for call in event["calls"] if is_module(call)]) for event in operators
        ]
        stacks = with_stacks(recorded.rows[how])
        assert counted((row["name"], stack) for row, stack in stacks) == counted(calls)
        stacks = with_stacks(recorded.rows[how], of_modules=True)
        assert counted((row["name"], stack) for row, stack in stacks) == counted(modules)
        assert max(len(stack) for _, stack in calls) > 10 and max(len(stack) for _, stack in modules) == 4

    def test_the_same_operations(self, recorded, how):
        run = recorded.command if how == "command" else recorded.folder / "run"
        theirs = Counter()
        for event in recorded.theirs["events"]:
            theirs[event["name"]] += event["flops"] or 0
        theirs = {name: flops for name, flops in theirs.items() if flops}
        rows = runs.analyze("operators", run)["results"]
        assert {row["name"]: row["flops"] for row in rows if row["name"] in theirs} == theirs
        assert {"aten::mm", "aten::addmm", "aten::add", "aten::mul"} <= set(theirs)


def is_op(row):
    return row["kind"] in ("op", "label") and row["name"] != OUR_LABEL


def is_step(event):
    return event["name"].startswith("ProfilerStep")


def no_step(name):
    return None if name is None or name.startswith("ProfilerStep") else name


def is_module(call):
    return call.startswith("nn.Module: ")


def counted(stacks):
    """How often a name has a stack; without lines in the program, which were entered before recording began."""
    lines = re.compile(r"(?<=all_options\.py)\(\d+\)")
    return Counter(
        (name, *(lines.sub("", without_chance(call)) for call in stack if not call.endswith(": labelled_fetch")))
        for name, stack in stacks
    )
