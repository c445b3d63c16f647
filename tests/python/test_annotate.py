"""``stepscope.annotate`` and ``stepscope.profiler.record_function``: labels as context managers and decorators."""

import sys
from collections import Counter

import pytest
import runs

PROGRAM = """
import asyncio, inspect, sys, threading
import torch
import stepscope
from stepscope.profiler import profile
annotate = stepscope.annotate

@annotate("decorated")
def decorated(x, *, y=1):
    "Says what it does."
    return x + y

@annotate("generated")
def generated(n):
    for i in range(n):
        got = yield i
        if got: yield got
    return "end"

@annotate("awaited")
async def awaited(x):
    await asyncio.sleep(0)
    return x

@annotate("streamed")
async def streamed(n):
    for i in range(n):
        yield i

class Thing:
    @annotate("method")
    def method(self): return self
    @annotate("static")
    @staticmethod
    def static(): return 1

async def consume(): return [i async for i in streamed(3)]

def everything():
    with annotate("block"):
        torch.ones(1).erf()
    with annotate(name="named"): pass
    again = annotate("again")
    with again, again: pass
    try:
        with annotate("failed"): raise KeyError
    except KeyError: pass
    assert decorated(1, y=2) == 3
    stream = generated(3)
    assert next(stream) == 0 and stream.send("x") == "x" and list(stream) == [1, 2]
    assert asyncio.run(awaited(5)) == 5 and asyncio.run(consume()) == [0, 1, 2]
    thing = Thing()
    assert thing.method() is thing and thing.static() == 1
    with annotate("\\ud800"): pass

everything()
assert decorated.__name__ == "decorated" and decorated.__doc__ == "Says what it does."
assert str(inspect.signature(decorated)) == "(x, *, y=1)"
assert inspect.iscoroutinefunction(awaited) and inspect.isgeneratorfunction(generated)
for wrong in ((), ("a", "b"), (1,)):
    try: annotate(*wrong)
    except TypeError: pass
    else: raise AssertionError(wrong)
with annotate("from before"):
    with profile(run=sys.argv[1]):
        everything()
        thread = threading.Thread(target=everything)
        thread.start(); thread.join()
        until_after = annotate("until after"); until_after.__enter__()
until_after.__exit__(None, None, None)
everything()
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    run = tmp_path_factory.mktemp("annotate") / "run"
    runs.execute(*runs.script(PROGRAM, run))
    return runs.ops(run)


def test_labels_do_not_overlap_what_begins_and_ends_them(tmp_path):
    text = """
import torch, stepscope
from stepscope.profiler import record_function
for label in (stepscope.annotate("a"), record_function("b"), stepscope.annotate("c")):
    with label:
        torch.ones(2)
with stepscope.annotate("d"), record_function("e"):
    torch.ones(2)
"""
    run = tmp_path / "run"
    runs.stepscope("record", "--stacks=calls", "-o", run, "--", *runs.script(text))
    assert {"a", "b", "c", "d", "e"} <= {row["name"] for row in runs.rows(run) if row["kind"] == "label"}
    assert "import.overlapping_slices" not in runs.findings(run)


def test_labels_are_counted(rows):
    counts = Counter(row["name"] for row in rows if row["kind"] == "label")
    twice = {"block": 1, "named": 1, "again": 2, "failed": 1, "decorated": 1, "generated": 5, "awaited": 1}
    twice.update({"streamed": 4, "method": 1, "static": 1, "\ufffd" * 3: 1})
    assert counts == Counter({name: 2 * count for name, count in twice.items()}) + Counter(["until after"])


def test_operators_lie_inside(rows):
    parents = {parent["name"] for parent, row in runs.with_parents(rows) if row["name"] == "aten::erf"}
    assert parents == {"block"}


def test_only_what_is_still_open_is_unfinished(rows):
    assert {row["name"] for row in rows if row["is_unfinished"]} == {"until after"}


def test_compiled_functions_give_what_they_give_without(tmp_path):
    text = """
import sys, torch, stepscope
from stepscope.profiler import profile, record_function

@stepscope.annotate("inner")
def inner(x): return x * 2

def outer(x):
    with record_function("old"):
        x = inner(x)
    return x + 1

def blocks(x):
    with stepscope.annotate("block"), stepscope.profiler.record_function("block", args="1"):
        x = x * 3
    return x + 1

made = stepscope.annotate("made"), record_function("made")

@record_function("again")
def made_before(x):
    with made[0], made[1]:
        return x * 4

x = torch.ones(2)
for run in (None, sys.argv[1]):
    with profile(run=run) if run else stepscope.annotate("nothing"):
        assert torch.equal(torch.compile(outer, backend="eager", fullgraph=True)(x), outer(x))
        assert torch.equal(torch.compile(blocks, backend="eager", fullgraph=True)(x), blocks(x))
        assert torch.equal(torch.compile(made_before, backend="eager", fullgraph=True)(x), made_before(x))
print("same")
"""
    assert runs.execute(*runs.script(text, tmp_path / "run")).stdout == "same\n"


def test_annotating_needs_no_torch(tmp_path):
    text = "import sys, stepscope\nwith stepscope.annotate('a'): print('torch' in sys.modules)"
    assert runs.execute(sys.executable, "-c", text).stdout == "False\n"


LABELS = """
import collections, copy, gc, inspect, pickle, sys, threading, weakref
from stepscope.profiler import profile, record_function

class Numbered(record_function):
    def __init__(self, name, number):
        super().__init__(f"{name} {number}")
        self.number = number
    def __exit__(self, *error):
        self.number += 1
        return super().__exit__(*error)

class Swallows(record_function):
    def __exit__(self, *error):
        super().__exit__(*error)
        return True

def attributes(label):
    return label.name, label.args, label.run_callbacks_on_exit, vars(label)

for label in (record_function("a"), record_function(name="a"), record_function(*"a")):
    assert attributes(label) == ("a", None, True, {}), attributes(label)
for label in (record_function("a", "b"), record_function("a", args="b"), record_function(args="b", name="a")):
    assert attributes(label) == ("a", "b", True, {}), attributes(label)
for wrong in (lambda: record_function(), lambda: record_function("a", "b", "c"), lambda: record_function(label="a")):
    try: wrong()
    except TypeError: pass
    else: raise AssertionError(wrong)
assert str(inspect.signature(record_function)) == "(name, args=None)" and "Label a block" in record_function.__doc__

numbered = Numbered("step", 3)
numbered.__init__("step", 4)
for again in (copy.deepcopy(numbered), pickle.loads(pickle.dumps(numbered))):
    assert type(again) is Numbered and attributes(again) == ("step 4", None, True, {"number": 4})

label = record_function("cycle")
label.itself = label
seen = weakref.ref(label), weakref.ref(label.__class__)
del label
gc.collect()
assert seen[0]() is None and seen[1]() is record_function

with profile(run=sys.argv[1]):
    with numbered, numbered: pass
    with Swallows("swallows"): raise KeyError
    with record_function("\\ud800"), record_function(5): pass
    for _ in range(100_000): record_function("never entered")
    with record_function("while it is freed"): pass
assert numbered.number == 6
before = sys.getrefcount(record_function), sys.getrefcount("name of them all")
for _ in range(1_000):
    with record_function("name of them all"): pass
    record_function("name of them all", args="name of them all")
assert (sys.getrefcount(record_function), sys.getrefcount("name of them all")) == before
"""


def test_record_function_is_a_class_as_any_other(tmp_path):
    run = tmp_path / "run"
    runs.execute(*runs.script(LABELS, run))
    names = [row["name"] for row in runs.ops(run)]
    assert names == ["step 4", "step 4", "swallows", "\ufffd" * 3, "5", "while it is freed"]


METHODS = """
import contextlib, gc, inspect, sys, weakref
import stepscope
from stepscope.profiler import record_function

class Inherits(record_function):
    def __enter__(self):
        self.entered = True
        return super().__enter__()

for make in (stepscope.annotate, record_function, Inherits):
    label, of_class = make("label"), type(make("label"))
    enter, leave = label.__enter__, label.__exit__
    assert (enter() is label, leave(None, None, None), leave()) == (True, None, None)
    assert (enter.__name__, leave.__name__, leave.__self__ is label) == ("__enter__", "__exit__", True)
    assert of_class.__enter__(label) is label and of_class.__exit__(label, None, None, None) is None
    assert record_function.__enter__.__name__ == "__enter__" and callable(enter) and "__exit__" in repr(record_function.__exit__)
    for wrong in (lambda: enter(1) if make is not Inherits else enter(1, 2), lambda: leave(a=1), lambda: of_class.__enter__(), lambda: of_class.__exit__("no label")):
        try: wrong()
        except TypeError: pass
        else: raise AssertionError((make, inspect.getsource(wrong)))
    stands = inspect.getattr_static(of_class, "__exit__")
    assert stands(label, None, None, None) is None and "__exit__" == stands.__name__
    for other in ("no label", 5, None):
        try: type(stands).__get__(stands, other)
        except TypeError: pass
        else: assert other is None
    other = make("other").__exit__
    assert leave == label.__exit__ != label.__enter__ and leave != other and leave != 5 and not leave == other
    assert hash(leave) == hash(label.__exit__) and "__exit__" in repr(leave) and {leave: 1}[label.__exit__] == 1
    for kind in {type(leave), type(stands)}:
        for wrong in (kind, lambda: object.__new__(kind)):
            try: wrong()
            except TypeError: pass
            else: raise AssertionError(kind)
    with contextlib.ExitStack() as stack:
        assert [stack.enter_context(label) for _ in range(100)] == [label] * 100
        kept = [(label.__enter__, label.__exit__) for _ in range(100)]
    assert all(first() is label and last() is None for first, last in kept)
    del kept

    def nest(depth):
        with make(f"depth {depth}") as of_depth:
            assert of_depth is not label
            if depth: nest(depth - 1)
    for _ in range(3): nest(100)
    try:
        with make("raises"): raise KeyError("kept")
    except KeyError as error: assert error.args == ("kept",)
    before = sys.getrefcount(of_class), sys.getrefcount(label), sys.getrefcount(type(enter))
    for _ in range(1_000):
        with label, label: pass
        label.__exit__
    assert (sys.getrefcount(of_class), sys.getrefcount(label), sys.getrefcount(type(enter))) == before

label = record_function("cycle")
label.leave = label.__exit__
seen = weakref.ref(label)
del label, enter, leave
gc.collect()
assert seen() is None
print("all")
"""


def test_methods_of_labels_are_as_any_other(tmp_path):
    program = tmp_path / "methods.py"
    program.write_text(METHODS)
    assert runs.execute(sys.executable, program).stdout == "all\n"
