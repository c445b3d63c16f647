"""A Chrome trace as rows: of ``torch.profiler``, and of Stepscope, which writes the same form.

Plain Python over the JSON on purpose: nothing of Stepscope reads what Stepscope is compared with.
"""

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Optional

# The label around the steps of a round, which are what is compared.
LABEL = "gpu_check"

KERNEL, COPY, FILL = "kernel", "gpu_memcpy", "gpu_memset"
DEVICE_WORK = (KERNEL, COPY, FILL)
CALLS = ("cuda_runtime", "cuda_driver")


@dataclass
class Range:
    """Anything with a begin and an end, in integer ns."""

    name: str
    start_ns: int
    dur_ns: int
    thread: object
    args: dict

    @property
    def end_ns(self):
        return self.start_ns + self.dur_ns

    def holds(self, moment_ns):
        return self.start_ns <= moment_ns <= self.end_ns


@dataclass
class Work(Range):
    """A kernel, copy or fill on a device."""

    kind: str
    launch: Optional[Range] = None
    op: Optional[str] = None


@dataclass
class Trace:
    """Rows of one recording, each kind in the order of time."""

    work: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    waits: list = field(default_factory=list)
    ops: list = field(default_factory=list)
    devices: list = field(default_factory=list)

    def of_kind(self, kind):
        return [work for work in self.work if work.kind == kind]


def read(path):
    """The rounds in a file, ``.json`` or ``.json.gz``, each a trace."""
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)
    with opened as file:
        # Times as they are written: a float has no room for nanoseconds since 1970.
        document = json.load(file, parse_float=Decimal)
    return rounds_of(document)


def rounds_of(document):
    """A trace for each range with the label, without what lies outside; one of everything when there is none."""
    trace = Trace(devices=document.get("deviceProperties", []))
    labels = []
    for event in document["traceEvents"]:
        if event.get("ph") == "X":
            _add(trace, labels, event)
    for rows in (trace.work, trace.calls, trace.waits, trace.ops, labels):
        rows.sort(key=lambda row: (row.start_ns, -row.dur_ns))
    _join(trace)
    return [_within(trace, label) for label in labels] or [trace]


def _add(trace, labels, event):
    category = event.get("cat")
    fields = {
        "name": event.get("name"),
        "start_ns": _ns(event["ts"]),
        "dur_ns": _ns(event.get("dur", 0)),
        "thread": (event.get("pid"), event.get("tid")),
        "args": event.get("args", {}),
    }
    if category in DEVICE_WORK:
        trace.work.append(Work(kind=category, **fields))
    elif category in CALLS:
        trace.calls.append(Range(**fields))
    elif category == "cuda_sync":
        trace.waits.append(Range(**fields))
    elif category == "cpu_op":
        trace.ops.append(Range(**fields))
    elif category == "user_annotation" and event.get("name") == LABEL:
        labels.append(Range(**fields))


def _ns(microseconds):
    return int(Decimal(microseconds) * 1000)


def _within(trace, label):
    """What begins in the range, at both ends of which the device is idle."""
    work, calls, waits, ops = (
        [row for row in rows if label.holds(row.start_ns)] for rows in (trace.work, trace.calls, trace.waits, trace.ops)
    )
    return Trace(work, calls, waits, ops, trace.devices)


def _join(trace):
    """Gives each work its launch, and the operator that launched it."""
    launches = {call.args.get("correlation"): call for call in trace.calls}
    by_id = {op.args["External id"]: op for op in trace.ops if "External id" in op.args}
    around = _Around(trace.ops)
    for work in trace.work:
        work.launch = launches.get(work.args.get("correlation"))
        op = by_id.get(work.args.get("External id"))
        if work.launch is not None and (op is None or not _launched_in(work.launch, op)):
            # Work without an operator has its correlation for an id in older files, which may be some operator's id.
            op = around.innermost(work.launch)
        work.op = op and op.name


def _launched_in(launch, op):
    return op.thread == launch.thread and op.holds(launch.start_ns)


class _Around:
    """Finds the innermost operator around a moment of a thread."""

    def __init__(self, ops):
        self._ops = defaultdict(list)
        for op in ops:
            self._ops[op.thread].append(op)
        self._starts = {thread: [op.start_ns for op in rows] for thread, rows in self._ops.items()}
        self._parents = {thread: _parents(rows) for thread, rows in self._ops.items()}

    def innermost(self, call):
        if call.thread not in self._ops:
            return None
        rows, parents = self._ops[call.thread], self._parents[call.thread]
        index = bisect_right(self._starts[call.thread], call.start_ns) - 1
        while index >= 0 and not rows[index].holds(call.start_ns):
            index = parents[index]
        return rows[index] if index >= 0 else None


def _parents(rows):
    """For each of a thread's ranges, which are in order, the range around it; -1 for none."""
    parents, open_ranges = [], []
    for index, row in enumerate(rows):
        while open_ranges and rows[open_ranges[-1]].end_ns < row.end_ns:
            open_ranges.pop()
        parents.append(open_ranges[-1] if open_ranges else -1)
        open_ranges.append(index)
    return parents
