"""Python's calls: as often as the interpreter says, and around each operator those that torch.profiler sees there.

What differs from torch.profiler, and why:

- Functions that were entered before recording began, and generators that go on, have the line of their ``def``; there,
  the line that ran then.
- Built-in methods are named without the address of the object that they were first called on.
- ``nn.Module: Linear_0`` is a row of kind ``module``, named by its path.
- Labels have no stack of their own, and are no part of one.
"""

import json
import os
import re
import sys
from collections import Counter

import pytest
import runs

# Other interpreters to try: paths with a colon between; they need neither PyTorch nor the package.
PYTHONS = [sys.executable, *filter(None, os.environ.get("STEPSCOPE_TEST_PYTHONS", "").split(":"))]
CALLS = ("python_call", "c_call")


@pytest.fixture(params=PYTHONS)
def calls(request, tmp_path):
    """Records a work of ``programs/stacks.py``; gives what ``sys.setprofile`` counted, and the rows."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "stepscope").symlink_to(runs.package())

    def record(work, *arguments):
        run = tmp_path / "run"
        command = [request.param, runs.PROGRAMS / "stacks.py", run, work, *map(str, arguments)]
        printed = runs.execute(*command, env=runs.environment(PYTHONPATH=packages)).stdout
        return json.loads(printed), [row for row in runs.rows(run) if row["kind"] in CALLS]

    return record


def of_program(counts):
    """Without what starts and stops recording and counting, and without how threads are made."""
    is_ours = re.compile(r"stacks\.py\(\d+\): (?!counted|main|on_threads|<module>)")
    builtins = ("abs", "len", "max", "sorted", "sum", "next", "index", "throw", "close", "send", "match")
    c_functions = re.compile(rf"<built-in (function|method) ({'|'.join(builtins)})( |>)")
    return {name: count for name, count in counts.items() if is_ours.match(name) or c_functions.match(name)}


def test_every_call_is_a_range(calls):
    expected, rows = calls("everything")
    assert of_program(Counter(row["name"] for row in rows)) == of_program(expected)
    assert of_program(expected)["stacks.py(20): add"] == 8 and of_program(expected)["<built-in function abs>"] == 3
    assert not [row for row in rows if row["is_unfinished"]]
    assert all(parent is None or runs.contains(parent, row) for parent, row in with_callers(rows))


def test_callers_are_around_what_they_call(calls):
    _, rows = calls("everything")
    pairs = Counter((short(parent["name"]), short(row["name"])) for parent, row in with_callers(rows) if parent)
    assert pairs["recurse", "recurse"] == 30
    assert pairs["fail", "fail"] == 5 and pairs["fail", "<built-in method index of list object>"] == 1
    assert pairs["work", "<built-in function sorted>"] == 1 and pairs["<built-in function sorted>", "key"] == 3
    assert pairs["outer", "inner"] == 2
    assert pairs["<built-in method close of generator object>", "values"] == 1 and pairs["values", "add"] == 1


def test_every_call_of_new_threads_is_a_range(calls):
    expected, rows = calls("on_threads")
    found = of_program(Counter(row["name"] for row in rows))
    # Since 3.12 also what `threading` calls before it asks for a profile function.
    found["<built-in function len>"] = min(found["<built-in function len>"], expected["<built-in function len>"])
    assert found == of_program(expected)
    assert len({row["thread"] for row in rows if short(row["name"]) == "everything"}) == 4


def test_recording_again_and_again_counts_each_call_once(calls):
    expected, rows = calls("everything", 5)
    assert of_program(Counter(row["name"] for row in rows)) == {
        name: 5 * count for name, count in of_program(expected).items()
    }
    assert not [row for row in rows if row["is_unfinished"]]


def test_deep_recursion(calls):
    expected, rows = calls("deep")
    assert of_program(Counter(row["name"] for row in rows)) == of_program(expected)
    assert not [row for row in rows if row["is_unfinished"]]


@pytest.fixture(scope="module")
def parity(tmp_path_factory):
    run = tmp_path_factory.mktemp("parity") / "run"
    theirs = json.loads(runs.execute(*runs.program("stack_parity.py", run)).stdout.splitlines()[-1])
    return run, theirs, runs.rows(run)


def test_the_same_stack_around_each_operator(parity):
    _, theirs, rows = parity
    labels = {row["name"] for row in rows if row["kind"] == "label"}
    stacks = [(name, stack) for name, stack in theirs["stacks"] if name not in labels]
    expected = Counter((name, *map(without_chance, stack)) for name, stack in stacks)
    found = Counter((row["name"], *map(without_chance, stack)) for row, stack in with_stacks(rows))
    assert found == expected
    assert len(found) > 100


def test_modules_stand_where_torch_profiler_has_them(parity):
    _, theirs, rows = parity
    labels = {row["name"] for row in rows if row["kind"] == "label"}
    modules = [(name, stack) for name, stack in theirs["modules"] if name not in labels]
    expected = Counter((name, *map(class_of, stack)) for name, stack in modules)
    found = Counter((row["name"], *modules) for row, modules in with_stacks(rows, of_modules=True))
    assert found == expected


def test_only_calls_around_something_recorded_are_written(parity):
    _, _, rows = parity
    inside = {id(call) for call, _ in used_calls(rows)}
    assert all(id(row) in inside for row in rows if row["kind"] in CALLS)


def test_operators_are_grouped_by_stack(parity):
    run, _, _ = parity
    found = runs.analyze("operators", run, "--group-by", "stack")["results"]
    stacks = [row["stack"].split(";") for row in found if row["name"] == "aten::addmm"]
    assert any(stack[0] == "<built-in function linear>" and stack[-1].endswith(": <module>") for stack in stacks)


def test_calls_in_chrome_json_name_their_caller(parity, tmp_path):
    run, _, _ = parity
    runs.stepscope("convert", run, "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls = {event["args"]["Python id"]: event for event in events if event.get("cat") == "python_function"}
    linear = [event for event in calls.values() if event["name"] == "<built-in function linear>"]
    assert linear
    for event in linear:
        caller = calls[event["args"]["Python parent id"]]
        assert caller["ts"] <= event["ts"] and event["ts"] + event["dur"] <= caller["ts"] + caller["dur"]
    assert any(event["name"].startswith("nn.Module: ") for event in calls.values())


def test_threads_that_run_already_and_those_that_end_later(tmp_path):
    """Threads that exist when recording begins are inside of calls that nobody saw begin."""
    run = tmp_path / "run"
    runs.execute(*runs.program("stack_threads.py", run))
    stacks = {row["name"]: stack for row, stack in with_stacks(runs.rows(run)) if row["name"].startswith("aten::erf")}
    expected = {
        "aten::erf": ["loop", "waiting", "run", "_bootstrap_inner", "_bootstrap"],
        "aten::erfc": ["short", "new", "run", "_bootstrap_inner", "_bootstrap"],
        "aten::erfinv": ["busy", "run", "_bootstrap_inner", "_bootstrap"],
    }
    found = {name: [short(call) for call in stack if not call.startswith("<")] for name, stack in stacks.items()}
    assert found == expected


def test_labels_stay_around_their_operators(parity):
    """The function that enters a label ends before it: their ranges would overlap."""
    run, _, rows = parity
    assert "import.overlapping_slices" not in runs.findings(run)
    linear = [row for row in rows if row["name"] == "embed"][0]
    assert [row["name"] for row in rows if row["kind"] == "op" and row is not linear and runs.contains(linear, row)]


def test_another_profiler_keeps_its_threads(tmp_path):
    text = """
import cProfile, sys, torch
from stepscope.profiler import profile
other = cProfile.Profile()
other.enable()
with profile(run=sys.argv[1], with_stack=True):
    torch.ones(2).erf()
other.disable()
print(sum(1 for entry in other.getstats() if "'erf'" in str(entry.code)))
"""
    done = runs.execute(*runs.script(text, tmp_path / "run"))
    assert done.stdout == "1\n"
    if sys.version_info < (3, 12):
        assert done.stderr.count("another profiler follows them") == 1
        assert "capture.option_not_recorded" in runs.findings(tmp_path / "run")


def with_stacks(rows, of_modules=False):
    """Each operator with the calls around it, innermost first."""
    found, open_calls = [], []
    for row in rows:
        thread = row["thread"]
        open_calls = [
            call
            for call in open_calls
            if call["thread"] == thread and call["start_ns"] + call["dur_ns"] > row["start_ns"]
        ]
        if row["kind"] == "op":
            kinds = ("module",) if of_modules else CALLS
            around = [call for call in reversed(open_calls) if call["kind"] in kinds]
            found.append((row, [call["module_class" if of_modules else "name"] for call in around]))
        elif row["kind"] in (*CALLS, "module"):
            open_calls.append(row)
    return found


def used_calls(rows):
    """(call, operator, module or collection inside it) of all pairs."""
    open_calls = []
    for row in rows:
        open_calls = [call for call in open_calls if call["thread"] == row["thread"] and runs.contains(call, row)]
        if row["kind"] in CALLS:
            open_calls.append(row)
        elif row["kind"] != "label":
            yield from ((call, row) for call in open_calls)


def without_chance(name):
    """Without addresses, and without the line of functions that were entered before and of generators."""
    return re.sub(r"\(\d+\): (<module>|halves)", r": \1", re.sub(r" at 0x[0-9a-f]+", "", name))


def class_of(module):
    return module.removeprefix("nn.Module: ").rpartition("_")[0]


def with_callers(rows):
    pairs, stack = [], []
    for row in rows:
        while stack and not runs.contains(stack[-1], row):
            stack.pop()
        pairs.append((stack[-1] if stack else None, row))
        stack.append(row)
    return pairs


def short(name):
    return name if name.startswith("<") else name.rpartition(": ")[2]
