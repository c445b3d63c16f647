"""What each feature records of a small training, beside what the release's own profiler records of it.

    python features.py FOLDER [FEATURE …]

Runs in the environment of a release. Prints a line of JSON for each feature: how much there is of ours and of theirs, and
what differs. Things are counted with all that the feature says of them: operators by name, inputs by name and value.
"""

import contextlib
import json
import os
import re
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path

import torch
import torch.profiler
from program import train

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import runs
from test_parity import none_below_0, numbers_by_name, without_copies
from test_shapes import slices
from test_stacks import class_of, with_stacks

CPU = [torch.profiler.ProfilerActivity.CPU]


class Recorded:
    """One work, recorded by both profilers, theirs first; made of whatever is asked for."""

    def __init__(self, folder, work=train, ours=None, **options):
        from stepscope.profiler import profile

        work()
        with torch.profiler.profile(activities=CPU, **options) as self.prof:
            work()
        with profile(run=folder / "run", **{**options, **(ours or {})}) as self.our_prof:
            work()
        self.folder = folder
        self.events = [event for event in self.prof.events() if not getattr(event, "is_python_function", False)]
        self.events = [event for event in self.events if event.name != "[memory]"]
        self.rows = runs.rows(self.our_prof.run)
        self.ops = [row for row in self.rows if row["kind"] in ("op", "label")]

    def traces(self):
        """Slices of both as Chrome traces have them: ours, theirs."""
        names = [str(self.folder / name) for name in ("ours.json", "theirs.json")]
        self.our_prof.export_chrome_trace(names[0])
        self.prof.export_chrome_trace(names[1])
        return tuple(Counter(slices(name)) for name in names)

    def tree(self, *tags):
        """The events of some kinds with what is around them, in torch.profiler's own tree."""
        left = [(root, ()) for root in self.prof.profiler.kineto_results.experimental_event_tree()]
        while left:
            node, around = left.pop()
            if node.tag.name in tags:
                yield node, around
            left += [(child, (node, *around)) for child in node.children]


def ops(folder):
    recorded = Recorded(folder)
    return Counter(row["name"] for row in recorded.ops), Counter(event.name for event in recorded.events)


def nesting(folder):
    recorded = Recorded(folder)
    ours = Counter((parent and parent["name"], row["name"]) for parent, row in runs.with_parents(recorded.ops))
    return ours, Counter((event.cpu_parent and event.cpu_parent.name, event.name) for event in recorded.events)


def autograd(folder):
    """Sequence numbers, from the smallest one on, and which nodes know the thread of their forward operator."""
    recorded = Recorded(folder)
    theirs = [
        {"name": event.name, "sequence_number": none_below_0(event.sequence_nr), "forward_thread": event.fwd_thread}
        for event in recorded.events
    ]
    theirs = without_copies(theirs)
    found = [numbers_by_name(rows) for rows in (recorded.ops, theirs)]
    for counter, rows in zip(found, (recorded.ops, theirs)):
        joined = [row for row in rows if row["forward_thread"] and row["sequence_number"] is not None]
        counter.update(("forward thread", row["name"]) for row in joined)
    return tuple(found)


def inputs(folder):
    """Sizes, types, strides and values."""
    return Recorded(folder, record_shapes=True).traces()


def memory(folder):
    """Allocations and frees in their order, each with the operator or label that it lies in."""
    recorded = Recorded(folder, profile_memory=True)
    kinds = ("op", "label", "memory")
    pairs = runs.with_parents([row for row in recorded.rows if row["kind"] in kinds])
    ours = [(parent and parent["name"], row["bytes"]) for parent, row in pairs if row["kind"] == "memory"]
    nodes = sorted(recorded.tree("Allocation"), key=lambda pair: pair[0].start_time_ns)
    theirs = [
        (next((call.name for call in around if call.tag.name == "TorchOp"), None), node.typed[1].alloc_size)
        for node, around in nodes
    ]
    return Counter(enumerate(ours)), Counter(enumerate(theirs))


def flops(folder):
    recorded = Recorded(folder, with_flops=True)
    theirs = Counter()
    for event in recorded.events:
        theirs[event.name] += event.flops or 0
    theirs = {name: flops for name, flops in theirs.items() if flops}
    rows = runs.analyze("operators", recorded.our_prof.run)["results"]
    ours = {row["name"]: row["flops"] for row in rows if row["name"] in theirs}
    return Counter(ours.items()), Counter(theirs.items())


def stacks(folder):
    """The calls around each operator, of which only those are recorded."""
    recorded = Recorded(folder, ours={"with_stack": "ops"}, with_stack=True)
    ours = Counter((row["name"], *in_work(map(plain, stack))) for row, stack in with_stacks(recorded.rows))
    theirs = of_tree(recorded, lambda name: not is_module(name), plain)
    return ours, Counter((name, *in_work(stack)) for name, *stack in theirs.elements())


def in_work(stack):
    """The calls down to the work; what was entered before recording began is not seen alike on all Pythons."""
    for call in stack:
        yield call
        if call.endswith("program.py: train"):
            return


def modules(folder):
    """The modules around each operator."""
    recorded = Recorded(folder, with_stack=True)
    ours = Counter((row["name"], *stack) for row, stack in with_stacks(recorded.rows, of_modules=True))
    return ours, of_tree(recorded, is_module, class_of)


def is_module(call):
    return call.startswith("nn.Module: ")


def of_tree(recorded, is_wanted, shown):
    """How often an operator has which calls around it."""
    labels = {row["name"] for row in recorded.ops if row["kind"] == "label"}
    return Counter(
        (node.name, *(shown(call.name) for call in around if call.tag.name.startswith("Py") and is_wanted(call.name)))
        for node, around in recorded.tree("TorchOp")
        if node.name not in labels
    )


def plain(call):
    """Without addresses, and without the lines of what was entered before recording began."""
    return re.sub(r"(\.py)\(\d+\): ", r"\1: ", re.sub(r" at 0x[0-9a-f]+", "", call))


def calls(folder):
    """Every call of Python and of C, in work without a model: what is named once is not done there."""
    recorded = Recorded(folder, python_work, with_stack=True)
    rows = [row for row in recorded.rows if row["kind"] in ("python_call", "c_call")]
    (place,) = [place for place, row in enumerate(rows) if plain(row["name"]) == "features.py: python_work"]
    ours = Counter(plain(row["name"]) for row in rows[place + 1 :] if runs.contains(rows[place], row))
    theirs = Counter(
        plain(node.name)
        for node, around in recorded.tree("PyCall", "PyCCall")
        if "features.py: python_work" in map(plain, (call.name for call in around))
    )
    return ours, theirs


def python_work():
    text = json.dumps({str(number): [number] * number for number in range(20)}, indent=1, sort_keys=True)
    words = sorted(re.findall("[0-9]+", text), key=lambda word: (len(word), word))
    torch.full((), sum(int(word) for word in words)).item()


def compiled(folder):
    """Names of the ranges around compiled code."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
    work = torch.compile(model)

    def step():
        work(torch.ones(4, 8)).sum().backward()

    step()
    recorded = Recorded(folder, step)
    # Not of its events, where an operator that does nothing but call itself is one.
    return Counter(row["name"] for row in recorded.ops), Counter(node.name for node, _ in recorded.tree("TorchOp"))


def ring(folder):
    """A window that a flight recorder kept, beside a recording of their own."""
    from stepscope.profiler import profile

    recorded = Recorded(folder)
    with profile(run=folder / "ring", ring=3600) as prof:
        train()
        prof.keep("look")
    (kept,) = (folder / "ring" / "kept").iterdir()
    theirs = Counter(event.name for event in recorded.events)
    return Counter(row["name"] for row in runs.ops(kept)), theirs


def collectives(folder):
    """Operators and works of two ranks with gloo, with their inputs; ours also count as the group does."""
    program = runs.program("all_options_ranks.py", folder)
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(runs.started(*program, env=runs.environment(RANK=rank, WORLD_SIZE=2), timeout=300))
            for rank in range(2)
        ]
        # Before it, gloo of some releases says who is connected.
        printed = [process.communicate()[0].split()[-2:] for process in started]
    numbers = [row["collective_sequence_number"] for row in runs.rows(folder / "run") if row["kind"] == "label"]
    ours, theirs = Counter(filter(None, numbers)), Counter()
    for rank, (first, last) in enumerate(printed):
        theirs.update(range(int(first) + 1, int(last) + 1))
        for counter, who in ((ours, "stepscope"), (theirs, "torch")):
            # Before 2.13 torch.profiler does not see what else gloo's threads run.
            found = slices(folder / f"{who}-{rank}.json")
            counter.update(slice_[:-1] for slice_ in found if slice_[0].startswith(("gloo:", "c10d::")))
    return ours, theirs


def table(folder):
    """Lines of the table of averages: names and calls, and the heads of columns."""
    recorded = Recorded(folder)
    found = []
    for prof in (recorded.our_prof, recorded.prof):
        lines = [re.split(r"\s{2,}", line.strip()) for line in prof.key_averages().table(row_limit=-1).splitlines()]
        lines = [line for line in lines if len(line) > 5 and not line[0].startswith("-")]
        found.append(Counter([tuple(lines[0]), *((line[0], line[-1]) for line in lines[1:])]))
    return tuple(found)


FEATURES = {
    each.__name__: each
    for each in (
        ops,
        nesting,
        autograd,
        inputs,
        memory,
        flops,
        stacks,
        modules,
        calls,
        ring,
        table,
        collectives,
        compiled,
    )
}


def main(folder, *names):
    warnings.simplefilter("ignore")
    for name in names or FEATURES:
        here = Path(folder) / name
        here.mkdir()
        try:
            ours, theirs = FEATURES[name](here)
            different = [*(ours - theirs).items(), *((thing, -count) for thing, count in (theirs - ours).items())]
            said = {"ours": sum(ours.values()), "theirs": sum(theirs.values()), "different": different[:20]}
        except Exception:
            said = {"error": traceback.format_exc()[-1500:]}
        print(json.dumps({"feature": name, **said}, default=str), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
