"""``stepscope.compat.dftracer``: DFTracer's names and signatures, and events without its faults."""

import inspect
import json
import textwrap
from collections import Counter
from pathlib import Path

import pytest
import runs

TABLE = Path(__file__).with_name("dftracer_names.json")


def parameters(function):
    """The names of a function's parameters, those with defaults with an equals sign."""
    found = inspect.signature(function).parameters.values()
    return [each.name + "=" * (each.default is not inspect.Parameter.empty) for each in found]


@pytest.mark.parametrize("module", ["logger", "python"])
def test_all_names_of_dftracer_are_there_with_its_parameters(module):
    import importlib

    ours = importlib.import_module(f"stepscope.compat.dftracer.{module}")
    for name, members in json.loads(TABLE.read_text())[module].items():
        kind = getattr(ours, name)
        for member, expected in members.items():
            found = parameters(getattr(kind, member))
            assert [each.strip("=") for each in found[: len(expected)]] == [each.strip("=") for each in expected]
            # What need not be given there need not be given here; more parameters may follow.
            assert all(ours.endswith("=") for ours, theirs in zip(found, expected) if theirs.endswith("="))
            assert all(extra.endswith("=") for extra in found[len(expected) :]), f"{name}.{member}: {found}"


def test_the_tree_below_ai_is_the_same():
    from stepscope.compat.dftracer.python import ai

    def names(traced):
        return [(traced.cat, traced.name), *[pair for child in traced._children.values() for pair in names(child)]]

    expected = [tuple(pair) for pair in json.loads(TABLE.read_text())["ai"]]
    assert sorted(names(ai)) == sorted(expected)


PROGRAM = """
import asyncio, sys, threading, torch
from stepscope.compat.dftracer.MODULE import dftracer, dft_fn
from stepscope.profiler import profile

log = dftracer.initialize_log(logfile="x", data_dir="y", process_id=-1)
app = dft_fn("app", name="app")
io = dft_fn("data_loader")

class Reader:
    @io.log_init
    def __init__(self, epoch=1): self.step = 7
    @io.log
    def read(self, image_idx, image_size=5): return image_idx
    @io.log_static
    def close(): return 1

@app.log
def fails(): raise KeyError

@app.log
async def waits(step):
    await asyncio.sleep(0.001)
    app.update(args={"said": step})
    return step

@app.log
def yields(epoch):
    yield from range(epoch)

@app.log
def deep(step): return deep(step - 1) if step else 0

async def together(): return await asyncio.gather(waits(1), waits(2))

def everything():
    reader = Reader(epoch=4)
    assert reader.read(3) == 3 and reader.read(image_idx=4, image_size=9) == 4 and Reader.close() == 1
    try: fails()
    except KeyError: pass
    assert asyncio.run(together()) == [1, 2] and list(yields(2)) == [0, 1] and deep(2) == 0
    with dft_fn("app", name="block", step=1) as block:
        block.update(image_size=100, args={"text": "x", "half": 0.5})
    timed = dft_fn("app", name="timed").reset()
    timed.update(epoch=2).flush()
    assert [*dft_fn("dataloader", name="loop").iter([5, 6])] == [5, 6]
    threads = [threading.Thread(target=deep, args=[0]) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    log.log_event("told", "app", 10, 20, string_args={"a": "b"})

with profile(run=sys.argv[1]):
    everything()
log.finalize()
"""


def events(run):
    rows = sorted((row for row in runs.rows(run) if row["inputs"]), key=lambda row: (row["start_ns"], -row["dur_ns"]))
    return [(row["name"], json.loads(row["inputs"])["keywords"]) for row in rows]


@pytest.mark.parametrize("module", ["logger", "python"])
def test_events_have_the_arguments_of_their_calls(tmp_path, module):
    runs.execute(*runs.script(PROGRAM.replace("MODULE", module), tmp_path / "run"))
    found = events(tmp_path / "run")
    of = dict(found)
    loader = {"cat": "data_loader"}
    assert found[:4] == [
        ("Reader.__init__", {**loader, "epoch": 4}),
        ("Reader.read", {**loader, "step": 7, "sample": 3, "size": 5}),
        ("Reader.read", {**loader, "step": 7, "sample": 4, "size": 9}),
        ("Reader.close", loader),
    ]
    assert of["fails"] == {"cat": "app"}
    waits = [details for name, details in found if name == "waits"]
    assert waits == [{"cat": "app", "step": step, "said": step} for step in (1, 2)]
    assert [details["step"] for name, details in found if name == "deep"] == [2, 1, 0, 0, 0, 0]
    assert of["block"] == {"cat": "app", "step": 1, "size": 100, "text": "x", "half": 0.5}
    assert of["timed"] == {"cat": "app", "epoch": 2}
    assert of["told"] == {"cat": "app", "start_time": 10, "duration": 20, "a": "b"}
    counts = Counter(name for name, _ in found)
    name = "loop"
    assert (counts[f"{name}.iter"], counts[f"{name}.yield"]) == (3, 2)
    assert of[f"{name}.iter"] == {"cat": "dataloader", "dataflow": "dataloader", "step": 3}


def test_ai_is_a_block_a_decorator_and_a_loop(tmp_path):
    text = """
import sys, torch
from stepscope.compat.dftracer import ai
from stepscope.profiler import profile

@ai.compute.forward
def forward(): ai.compute.forward.update(args={"inside": 1})

@ai.data.item(step=3)
def item(): pass

with profile(run=sys.argv[1]):
    with ai.pipeline.epoch(epoch=0):
        for batch in ai.dataloader.fetch.iter(range(2)): forward()
        with ai.checkpoint.capture(epoch=0, args={"kind": "full"}): pass
    item(); forward()
    ai.compute.disable(); forward(); ai.compute.enable()
    with ai.data.item.derive("part"): pass
    ai.update(epoch=5)
    ai.comm.all_reduce.start(); ai.comm.all_reduce.stop()
"""
    runs.execute(*runs.script(text, tmp_path / "run"))
    found = events(tmp_path / "run")
    assert Counter(name for name, _ in found) == {
        "epoch": 1, "fetch.iter": 3, "fetch.block": 2, "forward": 3, "capture": 1, "item": 1, "item.part": 1,
        "all_reduce": 1,
    }  # fmt: skip
    of = dict(found)
    assert of["epoch"] == {"cat": "pipeline", "dataflow": "epoch", "epoch": 0}
    assert of["capture"] == {"cat": "checkpoint", "dataflow": "checkpoint", "epoch": 0, "kind": "full"}
    assert of["item"] == {"cat": "data", "dataflow": "data", "step": 3}
    assert of["forward"] == {"cat": "compute", "dataflow": "compute", "inside": 1}
    assert of["all_reduce"] == {"cat": "comm", "dataflow": "comm", "epoch": 5}


def test_what_dynamo_compiles_is_computed_and_recorded(tmp_path):
    program = """
        import torch
        from stepscope.compat.dftracer.python import Dynamo, create_backend, dynamo

        @dynamo.compile(autograd=False)
        def double(x):
            return x.erfinv() * 2

        x = torch.full((3,), 0.25)
        assert torch.equal(double(x), x.erfinv() * 2)
        linear = torch.nn.Linear(3, 2)
        compiled = torch.compile(linear, backend=create_backend("model", epoch=1, autograd=False))
        assert torch.equal(compiled(x), linear(x))
        assert Dynamo(enable=False).compile(linear) is linear
        assert (dynamo.count_parameters(linear), dynamo.count_parameters(x)) == (8, None)
        assert create_backend() is torch._dynamo.lookup_backend("aot_eager")
    """
    runs.record(tmp_path / "run", runs.script(textwrap.dedent(program)))
    counts = runs.counts_of_operators(tmp_path / "run")
    # Compiling calls some of them as well.
    assert counts["aten::erfinv"] >= 2 and counts["aten::linear"] >= 2
