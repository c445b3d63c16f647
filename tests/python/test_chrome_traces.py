"""Chrome traces of ``stepscope.profiler`` beside those of ``torch.profiler``: the same rows, names and arguments."""

import collections
import gc
import json
import re

import pytest
import stepscope
import stepscope.profiler
import torch
from torch.profiler import ProfilerActivity, _ExperimentalConfig

# What only we write, where a module's place in its model is.
OWN = "Stepscope module"


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.inner(x).relu()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = Block(), Block(), torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.second(self.first(x)))


def train(model, profiler):
    with profiler.record_function("label"):
        loss = model(torch.ones(4, 8)).sum()
    loss.backward()


def document_of(prof, path):
    prof.export_chrome_trace(str(path))
    # Names with the addresses of objects are cut within a character by PyTorch.
    return json.loads(path.read_text(errors="replace"))


def slices(document, *categories):
    rows = [row for row in document["traceEvents"] if row["ph"] == "X" and row.get("cat") != "Trace"]
    return [row for row in rows if not categories or row["cat"] in categories]


def both(folder, **options):
    """What each profiler writes of the first run of a new model, and our profile."""
    documents = {}
    for name, profiler in (("theirs", torch.profiler), ("ours", stepscope.profiler)):
        model = Net()
        gc.disable()
        with profiler.profile(activities=[ProfilerActivity.CPU], **options) as prof:
            train(model, profiler)
        gc.enable()
        documents[name] = document_of(prof, folder / f"{name}.json")
    return documents["ours"], documents["theirs"], prof


@pytest.fixture(scope="module")
def verbose(tmp_path_factory):
    options = {"with_stack": True, "record_shapes": True, "profile_memory": True}
    return both(tmp_path_factory.mktemp("verbose"), experimental_config=_ExperimentalConfig(verbose=True), **options)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    return both(tmp_path_factory.mktemp("quiet"), with_stack=True, profile_memory=True)


def modules(document):
    rows = slices(document, "python_function")
    rows = [row for row in rows if row["name"].startswith("nn.Module: ")]
    return [(row["name"], row["args"]["Python module id"]) for row in sorted(rows, key=lambda row: row["ts"])]


def test_modules_are_called_as_there_with_their_place_beside(quiet, tmp_path):
    ours, theirs, _ = quiet
    assert modules(ours) == modules(theirs)
    places = {row["name"]: row["args"][OWN] for row in slices(ours) if OWN in row["args"]}
    names = ("Net_0", "Block_0", "Linear_0", "Block_1", "Linear_1", "Linear_2")
    expected = dict(zip(names, ("Net", "first", "inner", "second", "inner", "last")))
    assert places == {f"nn.Module: {name}": place for name, place in expected.items()}
    # Our own reader takes the places.
    path = tmp_path / "again.json"
    path.write_text(json.dumps(ours))
    read = {row["path"] for row in stepscope.open(path).modules()["results"]}
    assert {"Net", "Net.first", "Net.first.inner", "Net.second.inner", "Net.last"} <= read


@pytest.mark.parametrize("name", ["quiet", "verbose"])
def test_calls_are_those_of_the_program_and_those_of_events(name, request):
    ours, _, prof = request.getfixturevalue(name)
    calls = slices(ours, "python_function")
    found = collections.Counter(row["name"] for row in calls)
    listed = collections.Counter(event.name for event in prof.events() if event.is_python_function)
    assert not [name for name in found if "stepscope" in name or "named_modules" in name or "set_window" in name]
    # What does nothing but call itself is one event, there as well.
    itself = {row["args"]["Python id"]: row["name"] for row in calls}
    recursive = [row["name"] for row in calls if itself.get(row["args"]["Python parent id"]) == row["name"]]
    assert found - collections.Counter(recursive) <= listed <= found


def keys(document):
    """By category, and of operators and labels by name, too."""
    found = collections.defaultdict(set)
    for row in document["traceEvents"]:
        if row["ph"] == "X" or row["name"] == "[memory]":
            name = row["name"] if row.get("cat") in ("cpu_op", "user_annotation") else None
            for key in {row.get("cat"), name} - {None}:
                found[key] |= set(row["args"]) - {OWN}
    return found


def test_rows_have_the_arguments_that_they_have_there(quiet, verbose):
    for ours, theirs, _ in (quiet, verbose):
        ours, theirs = keys(ours), keys(theirs)
        # That of memory is the only one that is not offered.
        theirs["cpu_instant_event"] -= {"Call stack"}
        assert ours == theirs
    assert "Call stack" in keys(verbose[0])["cpu_op"] and "Call stack" not in keys(quiet[0])["cpu_op"]


def test_rows_have_the_sequence_numbers_of_events(quiet):
    """Those of autograd's engine too, which says the numbers of the node that it runs."""
    ours, _, prof = quiet
    rows = {row["args"]["External id"]: row["args"] for row in slices(ours, "cpu_op", "user_annotation")}
    events = [event for event in prof.events() if event.external_id]
    for event in events:
        said = rows[event.external_id]
        expected = (event.sequence_nr, event.fwd_thread) if event.sequence_nr >= 0 else (-1, None)
        assert (said.get("Sequence number", -1), said.get("Fwd thread id")) == expected, event.name
    of_engine = [event for event in events if "evaluate_function" in event.name]
    assert {event.sequence_nr >= 0 for event in of_engine} == {False, True}


def test_every_row_has_a_number_of_its_own(quiet, verbose):
    for ours, _, _ in (quiet, verbose):
        rows = [row["args"] for row in slices(ours)]
        rows += [row["args"] for row in ours["traceEvents"] if row["name"] == "[memory]"]
        assert sorted(args["Ev Idx"] for args in rows) == list(range(len(rows)))
        assert {row["args"]["Record function id"] for row in slices(ours, "cpu_op", "user_annotation")} == {0}
        assert {row["args"]["finished"] for row in ours["traceEvents"] if row["name"] == "[memory]"} == {False}


def test_forward_operators_name_no_thread_of_another(quiet):
    for document in quiet[:2]:
        rows = [row["args"] for row in slices(document, "cpu_op") if "Sequence number" in row["args"]]
        assert {args["Fwd thread id"] == 0 for args in rows} == {True, False}


def stacks(document):
    """The functions around each operator of the forward pass, in order."""
    rows = sorted(slices(document, "cpu_op"), key=lambda row: row["ts"])
    rows = rows[: next(at for at, row in enumerate(rows) if row["name"].startswith("autograd::"))]
    shown = []
    for row in rows:
        frames = row["args"].get("Call stack", "").split(";")
        # Of what was entered before, there the line that ran then.
        frames = [
            re.sub(r" object at 0x.*", "", frame) for frame in frames if "/torch" in frame or "nn.Module" in frame
        ]
        shown.append((row["name"], frames))
    return shown


def test_stacks_are_those_of_there(verbose):
    ours, theirs, _ = verbose
    assert stacks(ours) == stacks(theirs)
    assert any("nn.Module: Block_1" in frames for _, frames in stacks(ours))
    for row in slices(ours, "python_function"):
        around = row["args"].get("Call stack", "").split(";")[:-1]
        by_id = {other["args"]["Python id"]: other for other in slices(ours, "python_function")}
        caller = by_id.get(row["args"]["Python parent id"])
        assert (around[0] if around else None) == (caller["name"] if caller else None)


def test_the_host_is_named_as_there(quiet):
    ours, theirs, _ = quiet
    assert ours["host_name"] == theirs["host_name"]
