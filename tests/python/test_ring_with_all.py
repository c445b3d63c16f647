"""The flight recorder with everything recorded: the window that is left can be read by itself."""

import json

import pytest
import runs

# What runs long before the end of the window is called with other shapes and from another function.
PROGRAM = """
import sys, time, torch

def first(x):
    return torch.erfinv(x)

def later(x, weight):
    with torch.profiler.record_function("later"):
        return torch.mm(x, weight).relu()

model = torch.nn.Linear(8, 8)
first(torch.zeros(5, 7))
weight = torch.ones(8, 8)
until = time.monotonic() + float(sys.argv[1])
turns = 0
while time.monotonic() < until:
    x = torch.ones(3, 8)
    model(later(x, weight)).sum().backward()
    turns += 1
first(torch.zeros(5, 7))
print(turns)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    run = tmp_path_factory.mktemp("ring") / "run"
    options = ["--ring", "500ms", "--shapes", "--memory", "--stacks=calls"]
    told = runs.stepscope("record", "-o", run, *options, "--", *runs.script(PROGRAM, "3"))
    return run, int(told.stdout), runs.rows(run)


@pytest.mark.slow
def test_it_is_a_window(recorded):
    run, turns, rows = recorded
    assert 0 < len(runs.named(rows, "aten::mm")) < turns * 2
    assert runs.findings(run)["capture.ring"]["count"] == 1
    assert "capture.dropped_records" not in runs.findings(run)
    assert "capture.damaged_segment" not in runs.findings(run)


def test_each_operator_has_its_inputs(recorded):
    _, _, rows = recorded
    dims = {}
    for row in rows:
        if row["kind"] == "op" and row["name"] in ("aten::mm", "aten::relu", "aten::erfinv", "aten::linear"):
            assert row["inputs"], row["name"]
            dims.setdefault(row["name"], set()).add(str(json.loads(row["inputs"])["dims"]))
    # Those of the backward pass, too. The first erfinv is long ago, and this one is called with the same.
    assert "[[3, 8], [8, 8]]" in dims["aten::mm"] and dims["aten::relu"] == {"[[3, 8]]"}
    assert dims["aten::erfinv"] == {"[[5, 7]]"}


def test_each_call_has_its_name_and_its_place(recorded):
    _, _, rows = recorded
    main = [row for row in rows if row["thread_name"] == "MainThread" and row["kind"] != "memory"]
    assert all(row["name"] for row in main)
    pairs = runs.with_parents([row for row in main if row["kind"] in ("op", "label", "python_call", "c_call")])
    parent_of = {id(row): parent for parent, row in pairs}

    def around(row):
        """The names of what is around a row, innermost first."""
        while (row := parent_of[id(row)]) is not None:
            yield row["name"].rsplit(" ", 1)[-1] if row["kind"] == "python_call" else row["name"]

    (last,) = runs.named(main, "aten::erfinv")
    assert list(around(last))[:2] == ["<built-in method erfinv of type object>", "first"]
    # Those of the forward pass. What began before the window is not there: the first may have lost what is around it.
    products = [list(around(row)) for row in runs.named(main, "aten::mm")]
    products = [names for names in products if names and "Backward" not in "".join(names)]
    assert len(products) > 50
    assert all(names[:2] == ["<built-in method mm of type object>", "later"] for names in products[1:])


def test_memory_has_its_sizes(recorded):
    run, _, _ = recorded
    events = runs.analyze("memory_events", run)["results"]
    sizes = {event["bytes"] for event in events if event["bytes"] > 0}
    assert 3 * 8 * 4 in sizes and all(event["bytes"] for event in events)


def test_windows_that_are_not_kept_are_told(tmp_path):
    text = """
import os, time, torch, stepscope
for number in range(19):
    torch.digamma(torch.zeros(4))
    assert stepscope.keep(f"look_{number}")
    time.sleep(0.15)
# A child has refused none.
child = os.fork()
if not child:
    torch.digamma(torch.zeros(4))
    os._exit(0)
os.waitpid(child, 0)
"""
    run = tmp_path / "run"
    runs.stepscope("record", "--ring", "30s", "-o", run, "--", *runs.script(text))
    assert len(list((run / "kept").iterdir())) == 16
    finding = runs.findings(run)["capture.windows_not_kept"]
    assert finding["count"] == 3 and "look_18" in finding["examples"][0]
    assert "not taken" in runs.report(run)


def test_a_window_that_is_asked_for_last_and_not_kept_is_told(tmp_path):
    run = tmp_path / "run"
    text = f"""
import os, torch, stepscope
torch.digamma(torch.zeros(4))
for number in range(16):
    os.makedirs({str(run)!r} + f"/kept/20260101-0000{{number:02}}-look")
assert stepscope.keep("nan")
"""
    runs.stepscope("record", "--ring", "30s", "-o", run, "--", *runs.script(text))
    assert "nan" in runs.findings(run)["capture.windows_not_kept"]["examples"][0]
