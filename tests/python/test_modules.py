"""Calls of modules: which, how often, and what they are called."""

import json
from collections import Counter

import pytest
import runs


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    run = tmp_path_factory.mktemp("modules") / "run"
    lines = runs.execute(*runs.program("modules.py", run)).stdout.splitlines()
    rows = [row for row in runs.rows(run) if row["kind"] == "module"]
    return run, [tuple(pair) for pair in json.loads(lines[-2])], rows, lines[-1]


def test_paths_and_classes_are_those_of_named_modules(recorded):
    _, named, rows, _ = recorded
    expected = {("Net" + bool(path) * "." + path, name) for path, name in named} - {("Net.layers", "ModuleList")}
    found = {(row["name"], row["module_class"]) for row in rows}
    assert expected <= found
    assert {name for name, _ in found - expected if name.startswith("Net.")} == set()


def test_calls_are_counted(recorded):
    _, _, rows, _ = recorded
    counts = Counter(row["name"] for row in rows)
    # Called twice, once more in vain, with a third layer; traced and run by torch.jit.
    assert counts["Net.layers.1"] == counts["Net.layers.0"] >= 5
    # The graph of torch.fx calls modules of torch.nn alone.
    assert counts["Net.layers.1.skip"] == counts["Net.layers.0.skip"] == counts["Net.layers.1"] + 1
    assert counts["Net.layers.2"] < counts["Net.layers.1"]
    # The first of its paths is the shared module's name.
    assert counts["Net.layers.0.attn.shared"] > counts["Net.layers.0.attn"] and not counts["Net.layers.1.attn.shared"]
    # A second model, and once that is gone the graph that torch.fx made of the first and calls like it.
    assert (counts["Net#2"], counts["ReLU"]) == (2, 3)
    assert not [row for row in rows if row["is_unfinished"]]


def test_calls_nest_by_their_paths(recorded):
    _, _, rows, _ = recorded
    first = next(row for row in rows if row["name"] == "Net")
    inside = [row["name"] for row in rows if row is not first and row["start_ns"] >= first["start_ns"]][:9]
    layer = ["", ".attn", ".attn.query", ".attn.shared", ".skip"]
    expected = [f"Net.layers.0{path}" for path in layer] + [f"Net.layers.1{path}" for path in layer]
    expected[8] = "Net.layers.0.attn.shared"
    assert inside == expected[:9]


def test_forward_and_backward_time_by_module(recorded):
    run, _, _, _ = recorded
    modules = {row["path"]: row for row in runs.analyze("modules", run)["results"]}
    query = modules["Net.layers.1.attn.query"]
    assert query["parent"] == "Net.layers.1.attn" and query["name"] == "query"
    assert query["forward_host_total_ns"] > 0 and query["backward_host_total_ns"] > 0
    assert modules["ReLU"]["backward_host_total_ns"] == 0


def test_the_program_gets_its_call_back(recorded):
    assert recorded[3] == "True"


def test_nothing_without_the_option(tmp_path):
    text = """
import torch
call = torch.nn.Module.__call__
torch.nn.Linear(2, 2)(torch.ones(1, 2))
print(call.__name__)
"""
    run = tmp_path / "run"
    recorded = runs.stepscope(
        "record", "--no-modules", "--no-gc", "--no-counters", "--no-stack-samples", "-o", run, "--", *runs.script(text)
    )
    assert recorded.stdout == "_wrapped_call_impl\n"
    assert {row["kind"] for row in runs.rows(run)} == {"op"}


@pytest.mark.slow
def test_compiled_models_are_traced_as_ever(tmp_path):
    """Dynamo sees no break in its graphs, with hooks on modules and without, also when it is loaded later."""
    text = """
import sys, torch
x = torch.ones(1, 2)
if "early" in sys.argv:
    import torch._dynamo
from stepscope.profiler import profile
for hook in (None, lambda module, args, output: output * 2):
    # Another one each time: Dynamo does not look at hooks again.
    torch._dynamo.reset() if "torch._dynamo" in sys.modules else None
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    if hook:
        net[0].register_forward_hook(hook)
    expected = net(x)
    with profile(run=sys.argv[1] + str(hook is None)):
        for _ in range(2):
            compiled = torch.compile(net, backend="eager", fullgraph=True)
            assert torch.equal(compiled(x), expected)
            assert torch.equal(net(x), expected)
    assert torch.equal(torch.compile(net, backend="eager", fullgraph=True)(x), expected)
print("same")
"""
    for when in ("early", "late"):
        assert runs.execute(*runs.script(text, tmp_path / when, when)).stdout == "same\n"
