"""The examples of many ranks: what is recorded of each is what its script does."""

import json
import sys
from collections import Counter

import pytest
import runs
from torch.distributed import TCPStore

RANKS = (0, 1)
STEPS = 3
MICROBATCHES = 4
LAUNCH = """
import os, subprocess, sys
def start(rank):
    return subprocess.Popen(sys.argv[1:], env={**os.environ, "RANK": rank, "LOCAL_RANK": rank})
ranks = [start("0"), start("1")]
sys.exit(max(rank.wait() for rank in ranks))
"""


def record(name, run, checkout):
    """Record an example with two ranks, started as torchrun does but from the server of forks."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    environment = runs.environment(
        WORLD_SIZE=len(RANKS),
        LOCAL_WORLD_SIZE=len(RANKS),
        GROUP_RANK=0,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=store.port,
        TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT=0,
    )
    rank = runs.forked(checkout / "examples" / "distributed" / f"{name}.py", "--steps", STEPS)
    runs.record(run, [sys.executable, "-c", LAUNCH, *rank], env=environment)


@pytest.fixture(scope="module", params=["ddp", "fsdp2", "tensor_parallel", "pipeline"])
def recorded(request, tmp_path_factory, checkout):
    """The name of an example, and its run."""
    run = tmp_path_factory.mktemp(request.param) / "run"
    record(request.param, run, checkout)
    return request.param, run


def trained(name, rank):
    """What a rank communicates in all steps: calls by collective and by bytes of one."""
    if name == "ddp":
        gradients = 64 * 256 + 256 + 256 * 256 + 256 + 256 * 10 + 10
        return {("all_reduce", 4 * gradients): STEPS, ("all_reduce", 4): STEPS}
    if name == "fsdp2":
        blocks, block, last = 3, 64 * 256 + 256 + 256 * 64 + 64, 64 * 10 + 10
        return {
            # Blocks forward and backward; what is not in a block stays after the forward pass.
            ("all_gather", 4 * block): 2 * blocks * STEPS,
            ("all_gather", 4 * last): STEPS,
            ("_reduce_scatter_base", 4 * block): blocks * STEPS,
            ("_reduce_scatter_base", 4 * last): STEPS,
        }
    if name == "tensor_parallel":
        # Outputs of both blocks, and the gradient of the second one's input: nobody wants that of the first one's.
        return {("all_reduce", 4 * 32 * 64): 3 * STEPS}
    of_microbatch = 4 * 32 // MICROBATCHES * 64
    return {(name, of_microbatch): MICROBATCHES * STEPS for name in ("send", "recv")}


# What DistributedDataParallel and DTensor exchange before the first step depends on the release of PyTorch.
SET_UP = {"ddp": {"all_gather", "broadcast"}, "tensor_parallel": {"broadcast", "scatter"}, "fsdp2": set()}


def test_every_rank_is_there_with_its_place_and_its_group(recorded):
    name, run = recorded
    processes = {}
    for part in runs.parts(run):
        process = runs.metadata(part)
        processes[process["rank"]] = process
        assert not process["is_killed"] and not process["dropped"] and not process["damaged"]
    assert sorted(processes) == list(RANKS)
    for rank, process in processes.items():
        facts = process["facts"]
        expected = {"process_name": f"{name}.py", "rank": str(rank), "world_size": "2", "local_rank": str(rank)}
        expected.update({"local_world_size": "2", "node_rank": "0", "restart_count": "0"})
        assert {key: facts.get(key) for key in expected} == expected
        groups = [(group["description"], group["ranks"]) for group in json.loads(facts["process_groups"])]
        assert groups == [("default_pg", list(RANKS))]


def test_every_training_step_is_one_step(recorded):
    _, run = recorded
    rows = [row for row in runs.analyze("ranks_overview", run)["results"] if row["row"] == "one"]
    assert [(row["rank"], row["step"]) for row in rows] == [(rank, step) for rank in RANKS for step in range(STEPS)]
    for row in rows:
        assert row["total_ns"] == sum(row[f"{part}_ns"] for part in ("compute", "overlap", "exposed_comm", "other"))
        assert row["compute_ns"] + row["overlap_ns"] > 0 and row["exposed_comm_ns"] + row["overlap_ns"] > 0


def test_every_rank_communicates_what_its_script_says(recorded):
    name, run = recorded
    rows = runs.analyze("collectives", run)["results"]
    for rank in RANKS:
        of_rank = [row for row in rows if row["rank"] == rank]
        assert {(row["group"], row["group_size"], row["group_description"]) for row in of_rank} == {
            ("0", len(RANKS), "default_pg")
        }
        # Each call has its work, and each work its call.
        assert all(row["calls"] == row["works"] and row["work_ns"] > 0 for row in of_rank)
        calls = Counter()
        for row in of_rank:
            calls[row["name"], row["size_bytes"]] += row["calls"]
        expected = trained(name, rank)
        assert {key: calls.pop(key) for key in expected} == expected
        if name == "pipeline":
            # Both stages tell each other what they are going to send: few bytes, once.
            assert sum(calls.values()) < MICROBATCHES * STEPS
        else:
            assert {collective for collective, _ in calls} == SET_UP[name]


def test_collectives_are_matched_across_ranks(recorded):
    name, run = recorded
    rows = runs.analyze("stragglers", run)["results"]
    if name == "pipeline":
        # What goes from one rank to another is no collective of all, but what is sent is received.
        assert rows == []
        counts = Counter()
        for row in runs.analyze("collectives", run)["results"]:
            counts[row["rank"], row["name"], row["dtype"], row["size_bytes"]] += row["calls"]
        other = {"send": "recv", "recv": "send"}
        assert counts == {(1 - rank, other[kind], *of): calls for (rank, kind, *of), calls in counts.items()}
        return
    calls = Counter()
    for row in runs.analyze("collectives", run)["results"]:
        calls[row["rank"]] += row["calls"]
    assert {row["rank"]: row["calls"] for row in rows} == calls
    assert {row["group_description"] for row in rows} == {"default_pg"}
    assert sum(row["last_calls"] for row in rows) <= calls[0]


def test_ranks_of_one_machine_are_on_one_clock(recorded):
    _, run = recorded
    (row,) = runs.analyze("clock_residuals", run)["results"]
    assert (row["ranks"], row["offset_ns"], row["drift_per_second_ns"]) == (len(RANKS), 0, 0)
