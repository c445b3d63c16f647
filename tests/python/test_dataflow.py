"""``stepscope.dataflow``: ranges with a stage and details, whatever kind of code they are around."""

import json
import subprocess
import sys

import pytest
import runs

PROGRAM = """
import asyncio, sys, threading
import torch
from stepscope.dataflow import checkpoint, comm, compute, data, dataloader, epoch, preprocess
from stepscope.profiler import profile

@data
def plain(index): return index

@data("read", sample="index", size="bytes", epoch=3)
def read(index, *, bytes=7): return index

@preprocess(sample="index")
async def decoded(index):
    await asyncio.sleep(0)
    return index

@compute(step="count")
def generated(count):
    yield from range(count)

@data(sample="first")
async def streamed(first):
    for index in range(first, first + 2):
        yield index

class Set:
    @data(sample="index")
    def __getitem__(self, index): return index
    @comm
    @staticmethod
    def send(): return 1
    @classmethod
    @compute("of class", step="number")
    def step(cls, number): return number

async def together():
    values = [value async for value in streamed(5)]
    return await asyncio.gather(*[decoded(index) for index in (1, 2, 3)]), values

def everything():
    assert plain(4) == 4 and read(8) == 8 and read(9, bytes=1) == 9
    with checkpoint("save", step=1) as saving:
        torch.ones(2).erf()
        saving.update(size=4096)
    try:
        with compute("fails", epoch=2): raise KeyError
    except KeyError: pass
    try:
        read()
    except TypeError: pass
    assert asyncio.run(together()) == ([1, 2, 3], [5, 6])
    assert list(generated(2)) == [0, 1]
    items = Set()
    assert items[6] == 6 and Set.send() == 1 and Set.step(11) == 11
    threads = [threading.Thread(target=read, args=[100 + index]) for index in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    for number in epoch.iter(range(2, 4)):
        for batch in dataloader.iter(["a", "b"], epoch=number): pass
        if number == 3: break
    with compute("outer", step=1) as outer:
        with compute("inner"):
            outer.update(step=2, size=True)

everything()
with profile(run=sys.argv[1]):
    everything()
everything()
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Names and details of all ranges, in order."""
    run = tmp_path_factory.mktemp("dataflow") / "run"
    runs.execute(*runs.script(PROGRAM, run))
    rows = sorted((row for row in runs.rows(run) if row["inputs"]), key=lambda row: (row["start_ns"], -row["dur_ns"]))
    found = [(row["name"], json.loads(row["inputs"])["keywords"]) for row in rows]
    assert runs.metadata(runs.parts(run)[0]).get("dropped", 0) == 0
    return found


def test_ranges_say_what_they_are_given(said):
    assert said[:5] == [
        ("plain", {"dataflow": "data"}),
        ("read", {"dataflow": "data", "epoch": 3, "sample": 8, "size": 7}),
        ("read", {"dataflow": "data", "epoch": 3, "sample": 9, "size": 1}),
        ("save", {"dataflow": "checkpoint", "step": 1, "size": 4096}),
        ("fails", {"dataflow": "compute", "epoch": 2}),
    ]
    of = dict(said)
    assert of["Set.__getitem__"] == {"dataflow": "data", "sample": 6}
    assert of["Set.send"] == {"dataflow": "comm"} and of["of class"] == {"dataflow": "compute", "step": 11}


def test_coroutines_and_generators_have_details_of_their_own(said):
    decoded = [details["sample"] for name, details in said if name == "decoded"]
    assert sorted(decoded) == [1, 2, 3]
    # A range for each stretch; the last one finds the end.
    assert [details for name, details in said if name == "generated"] == [{"dataflow": "compute", "step": 2}] * 3
    assert [details["sample"] for name, details in said if name == "streamed"] == [5] * 3


def test_threads_and_loops(said):
    threads = [details["sample"] for name, details in said if name == "read" and details.get("sample", 0) >= 100]
    assert sorted(threads) == [100, 101, 102]
    loop = [
        (details["dataflow"], details["epoch"], details.get("step"))
        for name, details in said
        if name in ("epoch", "dataloader")
    ]
    waits = [("dataloader", 0), ("dataloader", 1), ("dataloader", 2)]
    assert loop == [
        turn
        for number in (2, 3)
        for turn in [("epoch", number, None), *[(stage, number, step) for stage, step in waits]]
    ]


def test_an_outer_range_is_updated_while_an_inner_one_is_open(said):
    assert said[-2:] == [
        ("outer", {"dataflow": "compute", "step": 2, "size": 1}),
        ("inner", {"dataflow": "compute"}),
    ]


def test_the_trace_knows_the_stages(tmp_path):
    text = """
from stepscope.dataflow import checkpoint, data
for index in range(3):
    with data("item", sample=index): pass
with checkpoint("save"): pass
"""
    run = tmp_path / "run"
    runs.record(run, runs.script("import torch\n" + text))
    rows = runs.analyze("io_samples", run)["results"]
    assert sorted(row["samples"] for row in rows) == ["[0]", "[1]", "[2]"]
    assert {row["stage"] for row in rows} == {"data"}
    saved = runs.analyze("checkpoints", run)["results"]
    assert [(row["name"], row["known_by"], row["blocking_ratio"]) for row in saved] == [("save", "label", 1.0)]


def test_an_argument_that_a_function_does_not_have_is_said_at_once():
    from stepscope.dataflow import data

    with pytest.raises(TypeError, match="no argument 'idx'"):

        @data(sample="idx")
        def read(index):
            return index


def test_nothing_is_recorded_and_nothing_is_loaded_without_a_recording():
    text = """
import sys
from stepscope.dataflow import data, epoch
with data("x", sample=1) as x: x.update(size=3)
assert [*epoch.iter("ab")] == ["a", "b"]
assert not {"torch", "stepscope._engine"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", text], check=True, env=runs.environment())


def test_a_range_within_compiled_code_is_left_out_of_its_graph(tmp_path):
    text = """
import sys, torch
from stepscope.dataflow import compute
from stepscope.profiler import profile

@compute
def inner(x): return x.sin()

def outer(x): return inner(x) + 1

with profile(run=sys.argv[1]):
    compiled = torch.compile(outer, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), outer(torch.ones(2)))
"""
    runs.execute(*runs.script(text, tmp_path / "run"))
