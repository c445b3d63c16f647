"""The table of collectives, compared with what a few lines of Python read from real traces of ``torch.profiler``."""

import gzip
import json
import os
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest
import runs

# Where a machine has them: the variable, or beside the checkout.
TRACES = Path(os.environ.get("STEPSCOPE_TRACES") or Path(__file__).parents[3] / "shared" / "traces") / "kineto"
NAMES = ["a100_ddp_nccl_rank", "b200_eager_8gpu_stacks", "v100_ns_resolution", "sampled_128_rank0"]
SAID = ("Collective name", "Process Group Name", "dtype", "In msg nelems", "Out msg nelems")
COLUMNS = ("name", "group", "dtype", "input_elements", "output_elements")
BYTES = {"Byte": 1, "Char": 1, "Half": 2, "BFloat16": 2, "Float": 4, "Int": 4, "Long": 8}


# Types of a label's inputs, which has no other word of its collective than its name.
OF_LABELS = {"float": "Float", "long": "Long", "int": "Int", "signed char": "Char", "unsigned char": "Byte"}


def key_of(args):
    return tuple(args.get(name) for name in SAID)


def says(args):
    return any(args.get(name) is not None for name in SAID)


def span_ns(event):
    start = Decimal(event["ts"]) * 1000
    return int(start), int(start + Decimal(event["dur"]) * 1000)


def exposed_ns(span, computing):
    """What of a span no other covers, by going through its moments of change."""
    inside = [(max(a, span[0]), min(b, span[1])) for a, b in computing if a < span[1] and span[0] < b]
    at, left = span[0], 0
    for start, end in sorted(inside):
        left += max(0, start - at)
        at = max(at, end)
    return left + max(0, span[1] - at)


def asked_by_labels(events):
    """Spans, threads and keys of operators in which a label of NCCL alone says which collective they are."""
    for label in events:
        if not (label["name"].startswith("nccl:") and label.get("cat") == "user_annotation"):
            continue
        (elements,), (dtype,) = label["args"]["Input Dims"][0], label["args"]["Input type"]
        start, end = span_ns(label)
        around = [
            (*span_ns(op), op["tid"])
            for op in events
            if op.get("cat") == "cpu_op" and op["tid"] == label["tid"]
            if span_ns(op)[0] <= start and end <= span_ns(op)[1]
        ]
        yield max(around), (label["name"].removeprefix("nccl:"), None, OF_LABELS[dtype], elements, None)


def expected(path):
    """Rows by what they are told apart by, as a mapping."""
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    events = [event for event in document["traceEvents"] if event.get("ph") == "X"]
    ops = [event for event in events if event.get("cat") == "cpu_op" and says(event.get("args", {}))]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    of_op = {event["args"]["External id"]: key_of(event["args"]) for event in ops}
    rows = defaultdict(lambda: defaultdict(int))
    asked = list(asked_by_labels(events)) if not ops else []
    for (start, end, _), key in asked:
        rows[key]["calls"] += 1
        rows[key]["host_ns"] += end - start
    launches = {event["args"]["correlation"]: event for event in events if event.get("cat") == "cuda_runtime"}

    def asked_for(kernel):
        launch = launches.get(kernel["args"]["correlation"]) if asked else None
        of = [key for (start, end, tid), key in asked if launch["tid"] == tid and start <= span_ns(launch)[0] <= end]
        return of[0] if of else None

    for event in ops:
        start, end = span_ns(event)
        rows[key_of(event["args"])]["calls"] += 1
        rows[key_of(event["args"])]["host_ns"] += end - start
    is_named = [any(word in event["name"].lower() for word in ("nccl", "all_reduce_kernel")) for event in kernels]
    communicates = [is_named[at] or says(event["args"]) for at, event in enumerate(kernels)]
    computing = [span_ns(event) for event, is_comm in zip(kernels, communicates) if not is_comm]
    for event in (event for event, is_comm in zip(kernels, communicates) if is_comm):
        key = asked_for(event) or of_op.get(event["args"].get("External id"), key_of(event["args"]))
        start, end = span_ns(event)
        rows[key]["kernels"] += 1
        rows[key]["device_ns"] += end - start
        rows[key]["exposed_ns"] += exposed_ns((start, end), computing)
    for (name, _, dtype, elements_in, elements_out), row in rows.items():
        if dtype is None:
            continue
        # What a gather gives, no label says.
        size = BYTES[dtype] * max(elements_in, elements_out or 0) if elements_out or "gather" not in name else 0
        times = row["calls"] or row["kernels"]
        row["input_bytes"] = BYTES[dtype] * elements_in * times
        if elements_out is not None:
            row["output_bytes"] = BYTES[dtype] * elements_out * times
        if size and row["device_ns"]:
            # In these traces a call launches one kernel.
            bandwidth = Decimal(size) * row["kernels"] * 10**9 / row["device_ns"]
            row["algorithm_bandwidth_bytes_per_s"] = int(bandwidth + Decimal("0.5"))
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_collectives_are_those_of_the_raw_trace(name):
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"needs the trace {path.name}")
    wanted = expected(path)
    assert wanted
    found = runs.analyze("collectives", path)["results"]
    assert sorted(str([row[name] for name in COLUMNS]) for row in found) == sorted(str(list(key)) for key in wanted)
    numbers = ("calls", "kernels", "host_ns", "device_ns", "exposed_ns", "input_bytes", "output_bytes")
    for row in found:
        of_row = wanted[tuple(row[name] for name in COLUMNS)]
        has_kernels = of_row["kernels"] > 0
        for name in (*numbers, "algorithm_bandwidth_bytes_per_s"):
            is_known = name in of_row and (has_kernels or name not in ("kernels", "device_ns", "exposed_ns"))
            assert row[name] == (of_row[name] if is_known else None), (row, name)


def test_communication_is_in_the_table_once():
    path = TRACES / "a100_ddp_nccl_rank.json.gz"
    if not path.exists():
        pytest.skip(f"needs the trace {path.name}")
    kernels = runs.analyze("kernels", path)["results"]
    total = sum(row["total_ns"] for row in kernels if row["kind"] == "communication")
    rows = runs.analyze("collectives", path)["results"]
    assert total > 0 and sum(row["device_ns"] or 0 for row in rows) == total
