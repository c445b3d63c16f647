"""What must be equal in two recordings of the same steps: one function a check.

Each gets the recordings of ``torch.profiler`` and those of Stepscope, one or more of each (rounds), and says what it
found. What counts is compared round by round with the first of ``torch.profiler``'s.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict

from gpu.durations import durations
from gpu.outcome import FAILS, HOLDS, NOT_RUN, NOTHING, Outcome, equal_counts
from gpu.trace import COPY, DEVICE_WORK, FILL, KERNEL

# Blocks per SM are written with seven digits, occupancy in whole percent.
BLOCKS_RATIO = 1e-4
OCCUPANCY_PERCENT = 1.0
# Of a kernel whose blocks have more shared memory than a device gives without being asked, torch.profiler says 0 %.
MOST_SHARED_BYTES = 48 << 10
# How much lower than torch.profiler's the share of calls that cross no edge of an operator may be.
PLACED_RATIO = 0.02


def compare(theirs, ours, expected=()):
    """Every check; one that has nothing to compare fails where the workload says that it must have."""
    found = [check(name, theirs, ours) for name, check in CHECKS.items()]
    for outcome in found:
        if outcome.status == NOTHING and outcome.check in expected:
            outcome.status = FAILS
            outcome.says += ", but this workload has them"
    return found


def _each_round(check, theirs, ours, what, key_of):
    """Compares counts of what ``key_of`` makes of a recording."""
    first = key_of(theirs[0])
    for again in theirs[1:]:
        with_itself = equal_counts(check, first, key_of(again), what)
        if with_itself.status == FAILS:
            return Outcome(check, NOT_RUN, f"torch.profiler's own rounds differ: {with_itself.says}")
    found = [equal_counts(check, first, key_of(round_), what) for round_ in ours]
    return next((outcome for outcome in found if outcome.status == FAILS), found[0])


def _count_of_works(kind, what):
    def check(name, theirs, ours):
        return _each_round(name, theirs, ours, what, lambda trace: Counter(work.name for work in trace.of_kind(kind)))

    return check


def launches(check, theirs, ours):
    """Grid, block, registers and shared memory of each kernel."""
    keys = ("grid", "block", "registers per thread", "shared memory")
    return _each_round(check, theirs, ours, "launch shapes", lambda trace: _of_kernels(trace, keys))


def _of_kernels(trace, keys):
    kernels = trace.of_kind(KERNEL)
    return Counter((work.name, *(_plain(work.args.get(key)) for key in keys)) for work in kernels)


def _plain(value):
    return tuple(value) if isinstance(value, list) else value


def occupancy(check, theirs, ours):
    """Blocks per SM and occupancy, within what they are rounded to."""
    found = [_equal_occupancy(check, _occupancies(theirs[0]), _occupancies(round_)) for round_ in ours]
    return next((outcome for outcome in found if outcome.status == FAILS), found[0])


def _equal_occupancy(check, their_rows, our_rows):
    if not their_rows and not our_rows:
        return Outcome(check, NOTHING, "neither has kernels with an occupancy")
    numbers = {
        "torch": len(their_rows),
        "stepscope": len(our_rows),
        "largest_difference_percent": 0.0,
        "not_told_by_torch": 0,
    }
    if [row[:4] for row in their_rows] != [row[:4] for row in our_rows]:
        return Outcome(check, FAILS, "not the same kernels have blocks per SM and an occupancy", numbers)
    for (name, *_, shared, their_blocks, their_percent), (*_, our_blocks, our_percent) in zip(their_rows, our_rows):
        if abs(our_blocks - their_blocks) > BLOCKS_RATIO * abs(their_blocks):
            return Outcome(check, FAILS, f"blocks per SM of {name[:60]}: {their_blocks} and {our_blocks}", numbers)
        if their_percent == 0 and shared > MOST_SHARED_BYTES:
            numbers["not_told_by_torch"] += 1
            continue
        difference = abs(our_percent - their_percent)
        numbers["largest_difference_percent"] = max(numbers["largest_difference_percent"], difference)
        if difference > OCCUPANCY_PERCENT:
            return Outcome(check, FAILS, f"occupancy of {name[:60]}: {their_percent} % and {our_percent} %", numbers)
    return Outcome(check, HOLDS, numbers=numbers)


def _occupancies(trace):
    """Name, grid, block, shared memory, blocks per SM, percent of each kernel that has them, sorted."""
    rows = []
    for work in trace.of_kind(KERNEL):
        blocks, percent = work.args.get("blocks per SM"), work.args.get("est. achieved occupancy %")
        if blocks is not None and percent is not None:
            shape = (str(work.args.get(key)) for key in ("grid", "block"))
            shared = int(work.args.get("shared memory", 0))
            rows.append((work.name, *shape, shared, float(blocks), float(percent)))
    return sorted(rows)


def launching_ops(check, theirs, ours):
    """The operator that launched each kernel, copy and fill."""
    if not any(work.op for trace in theirs + ours for work in trace.work):
        return Outcome(check, NOTHING, "neither has work that an operator launched")

    def key_of(trace):
        return Counter((work.name, f"by {work.op}") for work in trace.work)

    return _each_round(check, theirs, ours, "launching operators", key_of)


def streams(check, theirs, ours):
    """On which device and stream what ran, as often."""

    def key_of(trace):
        return Counter((work.args.get("device"), work.args.get("stream"), work.name) for work in trace.work)

    return _each_round(check, theirs, ours, "streams", key_of)


def copied_bytes(check, theirs, ours):
    """Bytes of each copy and fill."""

    def key_of(trace):
        return Counter((work.name, work.args.get("bytes")) for work in trace.work if work.kind != KERNEL)

    return _each_round(check, theirs, ours, "copied bytes", key_of)


def graph_nodes(check, theirs, ours):
    """How many nodes each CUDA graph has, and how often they ran. Ids of graphs and nodes differ between processes. Where
    torch.profiler tells no nodes, as with CUDA 13.0, each launch of a graph has to run as many as it does there."""

    def nodes(trace):
        nodes = defaultdict(Counter)
        for work in trace.work:
            if _node(work):
                nodes[work.args.get("graph id")][_node(work)] += 1
        return Counter((f"{len(of_graph)} nodes", f"{sum(of_graph.values())} runs") for of_graph in nodes.values())

    def launches(trace):
        launches, strays = defaultdict(list), 0
        for work in trace.work:
            if work.launch is not None and "GraphLaunch" in work.launch.name:
                launches[work.launch.args.get("correlation")].append(work)
            elif _node(work):
                strays += 1
        # Each node runs once in a launch: told twice, it is one.
        sizes = [len({_node(work) or (at,) for at, work in enumerate(works)}) for works in launches.values()]
        return Counter(f"{size} nodes" for size in sizes) + Counter({"nodes without a graph's launch": strays})

    has_none = not any(_node(work) for trace in theirs for work in trace.work)
    is_launched = any(launches(trace) for trace in theirs)
    key_of, what = (launches, "launches of graphs") if has_none and is_launched else (nodes, "graph nodes")
    return _each_round(check, theirs, ours, what, key_of)


def _node(work):
    return work.args.get("graph node id")


# Threads of libraries ask these again and again until something is done: NCCL's watchdog, most of all.
POLLS = ("cudaEventQuery", "cudaStreamQuery", "cudaThreadExchangeStreamCaptureMode")


def calls(check, theirs, ours):
    """Calls of the runtime and of the driver, by name, but those that ask whether something is done."""

    def key_of(trace):
        return Counter(call.name for call in trace.calls if call.name not in POLLS)

    return _each_round(check, theirs, ours, "calls", key_of)


def waits(check, theirs, ours):
    """Synchronizations by kind; torch.profiler leaves out where a stream on which nothing ran waits for an event."""

    def key_of(trace):
        used = {(work.args.get("device"), work.args.get("stream")) for work in trace.work}
        return Counter(
            wait.name
            for wait in trace.waits
            if wait.name != "Stream Wait Event" or (wait.args.get("device"), wait.args.get("stream")) in used
        )

    return _each_round(check, theirs, ours, "waits", key_of)


def ops(check, theirs, ours):
    """Operators by name: that the same steps are compared."""
    return _each_round(check, theirs, ours, "operators", lambda trace: Counter(op.name for op in trace.ops))


COLLECTIVE_KEYS = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size")


def collectives(check, theirs, ours):
    """What is said of each collective communication."""

    def key_of(trace):
        said = [[op.args.get(key) for key in COLLECTIVE_KEYS] for op in trace.ops if op.name == "record_param_comms"]
        return Counter(tuple(map(str, row)) for row in said)

    return _each_round(check, theirs, ours, "collectives", key_of)


def clock(check, theirs, ours):
    """Host and device have one clock: calls, which the device's profiler tells, lie between begins and ends of the
    host's operators, and nothing runs on a device before its launch has begun."""
    early, placed = {}, {}
    for name, rounds in (("torch", theirs), ("stepscope", ours)):
        linked = [work for trace in rounds for work in trace.work if work.launch is not None]
        early[name] = min((work.start_ns - work.launch.start_ns for work in linked), default=None)
        found = [is_placed for trace in rounds for is_placed in _placed_calls(trace)]
        placed[name] = sum(found) / len(found) if found else None
    numbers = {"earliest_start_after_launch_ns": early, "calls_that_cross_no_operators_edge_ratio": placed}
    if early["stepscope"] is None:
        status = NOTHING if early["torch"] is None else FAILS
        which = "neither" if status == NOTHING else "only torch.profiler"
        return Outcome(check, status, f"{which} has device work with a launch", numbers)
    # torch.profiler's own clock may be off, too: it is the reference for how far.
    if early["stepscope"] < min(0, early["torch"] or 0):
        return Outcome(check, FAILS, f"work begins {-early['stepscope']} ns before its launch", numbers)
    if placed["torch"] is not None and (placed["stepscope"] or 0) < placed["torch"] - PLACED_RATIO:
        crossing = 1 - (placed["stepscope"] or 0)
        return Outcome(check, FAILS, f"{crossing:.0%} of calls cross an edge of an operator", numbers)
    return Outcome(check, HOLDS, numbers=numbers)


def _placed_calls(trace):
    """Of each call on a thread with operators, whether no operator begins or ends within it."""
    edges = defaultdict(list)
    for op in trace.ops:
        edges[op.thread] += [op.start_ns, op.end_ns]
    for of_thread in edges.values():
        of_thread.sort()
    on_threads = (call for call in trace.calls if call.thread in edges)
    for call in on_threads:
        of_thread = edges[call.thread]
        yield bisect_right(of_thread, call.start_ns) >= bisect_left(of_thread, call.end_ns)


def devices(check, theirs, ours):
    """What is said of the devices in use."""
    keys = ("name", "totalGlobalMem", "computeMajor", "computeMinor", "numSms", "warpSize", "regsPerMultiprocessor")
    used = {work.args.get("device") for trace in theirs for work in trace.work}
    their_devices, our_devices = (
        Counter(tuple(device.get(key) for key in ("id", *keys)) for device in trace.devices if device.get("id") in used)
        for trace in (theirs[0], ours[0])
    )
    return equal_counts(check, their_devices, our_devices, "devices")


# By the name under which they are printed, in this order.
CHECKS = {
    "ops": ops,
    "kernels": _count_of_works(KERNEL, "kernels"),
    "copies": _count_of_works(COPY, "copies"),
    "memsets": _count_of_works(FILL, "memsets"),
    "durations": durations,
    "launch shapes": launches,
    "occupancy": occupancy,
    "launching ops": launching_ops,
    "streams": streams,
    "copied bytes": copied_bytes,
    "graph nodes": graph_nodes,
    "calls": calls,
    "waits": waits,
    "collectives": collectives,
    "clock": clock,
    "devices": devices,
}


def counts(rounds):
    """How much of each kind the first round has."""
    return {kind: len(rounds[0].of_kind(kind)) for kind in DEVICE_WORK}
