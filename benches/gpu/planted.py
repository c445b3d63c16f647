"""Differences that are planted into a trace, and the checks that must see them.

Each is a function that changes the events of a Chrome trace in place. A check that none of these makes fail could not
fail at all.
"""

from collections import Counter

from gpu.trace import CALLS, DEVICE_WORK


def _first(events, *categories):
    return next(event for event in events if event.get("cat") in categories and event.get("ph") == "X")


def missing_op(events):
    events.remove(_first(events, "cpu_op"))


def missing_kernel(events):
    events.remove(_first(events, "kernel"))


def missing_copy(events):
    events.remove(_first(events, "gpu_memcpy"))


def missing_memset(events):
    events.remove(_first(events, "gpu_memset"))


def longer_kernel(events):
    """All kernels of the name that takes longest take 3 % longer."""
    total = Counter()
    for event in events:
        if event.get("cat") == "kernel":
            total[event["name"]] += float(event["dur"])
    name = max(total, key=total.get)
    for event in events:
        if event.get("name") == name:
            event["dur"] = float(event["dur"]) * 1.03


def all_longer(events):
    """Everything takes 2.5 % longer."""
    for event in events:
        if event.get("cat") in DEVICE_WORK:
            event["dur"] = float(event["dur"]) * 1.025


def other_grid(events):
    _first(events, "kernel")["args"]["grid"][0] += 1


def other_block(events):
    _first(events, "kernel")["args"]["block"][0] += 32


def other_registers(events):
    _first(events, "kernel")["args"]["registers per thread"] += 1


def other_shared_memory(events):
    _first(events, "kernel")["args"]["shared memory"] += 4


def other_blocks_per_sm(events):
    _first(events, "kernel")["args"]["blocks per SM"] = 0.5


def other_occupancy(events):
    _first(events, "kernel")["args"]["est. achieved occupancy %"] += 2


def no_occupancy(events):
    del _first(events, "kernel")["args"]["est. achieved occupancy %"]


def other_op(events):
    """The operators around the first launch have another name."""
    launch = _launch(events)
    for event in events:
        begins_before = event.get("cat") == "cpu_op" and event["tid"] == launch["tid"] and event["ts"] <= launch["ts"]
        if begins_before and event["ts"] + event["dur"] >= launch["ts"]:
            event["name"] = "aten::another"


def launched_outside(events):
    """The first kernel is linked with no call: so with no operator either, unless an id says one."""
    arguments = _first(events, "kernel")["args"]
    arguments["correlation"] = -1
    arguments.pop("External id", None)


def other_stream(events):
    _first(events, "kernel")["args"]["stream"] += 1


def other_device(events):
    _first(events, *DEVICE_WORK)["args"]["device"] += 1


def other_bytes(events):
    _first(events, "gpu_memcpy", "gpu_memset")["args"]["bytes"] += 1


def node_of_a_graph(events):
    """A kernel becomes the node of a graph, of which the other side knows nothing."""
    _first(events, "kernel")["args"].update({"graph id": 1, "graph node id": 7})


def missing_call(events):
    events.remove(_first(events, *CALLS))


def another_call(events):
    _first(events, *CALLS)["name"] = "cudaAnother"


def missing_wait(events):
    events.remove(_first(events, "cuda_sync"))


def another_collective(events):
    arguments = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 4, "Out msg nelems": 4}
    op = _first(events, "cpu_op")
    events.append({**op, "name": "record_param_comms", "args": {**arguments, "Group size": 1}})


def early_kernel(events):
    """A kernel begins a millisecond before its launch, and before any other that is too early."""
    launch = _launch(events)
    correlation = launch["args"]["correlation"]
    for event in events:
        if event.get("cat") == "kernel" and event["args"]["correlation"] == correlation:
            event["ts"] = launch["ts"] - 1_000


def later_device(events):
    """The device's profiler is 20 us behind the host's clock."""
    for event in events:
        if event.get("cat") in (*CALLS, *DEVICE_WORK, "cuda_sync"):
            event["ts"] += 20


def earlier_device(events):
    """It is 20 us ahead."""
    for event in events:
        if event.get("cat") in (*CALLS, *DEVICE_WORK, "cuda_sync"):
            event["ts"] -= 20


def _launch(events):
    correlation = _first(events, "kernel")["args"]["correlation"]
    calls = (event for event in events if event.get("cat") in CALLS)
    return next(event for event in calls if event["args"].get("correlation") == correlation)


# What is planted, and the checks that must fail. Others may fail as well: what is missing takes no time, either.
PLANTED = {
    missing_op: ["ops"],
    missing_kernel: ["kernels", "durations", "streams", "launch shapes", "occupancy"],
    missing_copy: ["copies", "copied bytes", "streams"],
    missing_memset: ["memsets", "copied bytes"],
    longer_kernel: ["durations"],
    all_longer: ["durations"],
    other_grid: ["launch shapes"],
    other_block: ["launch shapes"],
    other_registers: ["launch shapes"],
    other_shared_memory: ["launch shapes"],
    other_blocks_per_sm: ["occupancy"],
    other_occupancy: ["occupancy"],
    no_occupancy: ["occupancy"],
    other_op: ["launching ops"],
    launched_outside: ["launching ops"],
    other_stream: ["streams"],
    other_device: ["streams"],
    other_bytes: ["copied bytes"],
    node_of_a_graph: ["graph nodes"],
    missing_call: ["calls"],
    another_call: ["calls"],
    missing_wait: ["waits"],
    another_collective: ["collectives"],
    early_kernel: ["clock"],
    later_device: ["clock"],
    earlier_device: ["clock"],
}


def smaller_device(document):
    document["deviceProperties"][0]["numSms"] -= 1


# The same for what stands in the head of a trace.
PLANTED_IN_HEAD = {smaller_device: ["devices"]}
