"""``stepscope record``: an unmodified program, all its threads and processes."""

import glob
import json
import platform
import subprocess
import sys
from collections import Counter

import pytest
import runs
import torch

STEPS = 6
ITEMS = 2 * STEPS


@pytest.fixture(scope="module")
def rows(training):
    return runs.rows(training)


@pytest.fixture(scope="module")
def processes(training):
    """What each process says about itself, by its name and id."""
    found = [runs.metadata(part) for part in runs.parts(training)]
    return {(process["facts"]["process_name"], process["pid"]): process for process in found}


def places_of(rows, op):
    """Where an op ran: how often by (process name, thread name)."""
    return Counter((row["process_name"], row["thread_name"]) for row in runs.named(rows, f"aten::{op}"))


def test_ops_of_the_main_thread(rows):
    assert places_of(rows, "addmm") == {("training.py", "MainThread"): 2 * STEPS}


def test_ops_of_a_thread_with_its_name(rows):
    assert places_of(rows, "erfinv") == {("training.py", "cruncher"): 5}


def test_ops_of_forked_workers_with_their_names(rows):
    places = places_of(rows, "log1p")
    assert set(places) == {(f"DataLoader worker {worker}", f"DataLoader worker {worker}") for worker in (0, 1)}
    assert sum(places.values()) == ITEMS


def test_ops_of_a_spawned_worker_with_its_name(rows):
    assert places_of(rows, "expm1") == {("DataLoader worker 0", "DataLoader worker 0"): ITEMS}


def test_ops_of_a_spawned_process_with_its_name(rows):
    assert places_of(rows, "digamma") == {("spawned", "MainThread"): 3}


def test_ops_of_another_python_that_the_program_starts(rows):
    assert places_of(rows, "lgamma") == {("python", "MainThread"): 4}


def test_workers_label_the_batches_they_prepare(rows):
    fetches = [pair for pair in runs.with_parents(rows) if pair[1]["name"] == "aten::log1p"]
    assert {parent["name"] for parent, _ in fetches} == {"DataLoader.fetch"}


def test_labels_of_the_program_hold_its_ops(rows):
    assert len(runs.named(rows, "forward")) == STEPS
    assert {row["kind"] for row in runs.named(rows, "forward")} == {"label"}
    operators = [row for row in rows if row["kind"] in ("op", "label")]
    pairs = runs.with_parents(operators)
    inside = Counter(row["name"] for parent, row in pairs if parent and parent["name"] == "forward")
    assert inside["aten::linear"] == 2 * STEPS
    assert inside["aten::relu"] == STEPS


def test_waits_for_the_dataloader(rows, training):
    waits = runs.named(rows, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    # One more each: the one that finds the end.
    assert len(waits) == (STEPS + 1) + (STEPS // 2 + 1)
    steps = runs.analyze("step_breakdown", training)["results"]
    assert all(step["dataloader_ns"] > 0 for step in steps if step["step"] is not None)


def test_optimizer_steps_become_steps(rows, training):
    assert [row["process_name"] for row in rows if row["kind"] == "optimizer_step"] == ["training.py"] * STEPS
    assert "trace.inferred_steps" in runs.findings(training)
    steps = json.loads(runs.report(training, "--json"))["steps"]
    assert (steps["source"], steps["count"]) == ("optimizer", STEPS)


def test_nothing_is_unfinished_or_doubtful(rows, training):
    assert not [row for row in rows if row["is_unfinished"]]
    assert set(runs.findings(training)) == {"trace.inferred_steps"}


def test_six_processes_of_which_five_serve_the_first(processes, training):
    first = next(process for (name, _), process in processes.items() if name == "training.py")
    others = {key: process for key, process in processes.items() if process is not first}
    assert sorted(name for name, _ in others) == [
        "DataLoader worker 0",
        "DataLoader worker 0",
        "DataLoader worker 1",
        "python",
        "spawned",
    ]
    assert {process["parent_pid"] for process in others.values()} == {first["pid"]}
    assert not [process for process in processes.values() if process["is_killed"] or process["dropped"]]
    assert "5 workers" in runs.report(training)


def test_facts_of_process_and_machine(processes):
    facts = next(process["facts"] for (name, _), process in processes.items() if name == "training.py")
    assert facts["torch_version"] == torch.__version__
    assert facts["command"].split("\0")[1].endswith("programs/training.py")
    assert facts["cpu"] and int(facts["cpu_count"]) > 0
    assert facts["host"] and facts["python_version"] and facts["os"]
    nodes = glob.glob("/sys/devices/system/node/node[0-9]*/cpulist")
    assert facts.get("numa_nodes", "1") == str(len(nodes) or 1)
    assert ("numa_nodes_of_memory" in facts) == (len(nodes) > 1)


def test_settings_are_those_of_the_loop(tmp_path):
    text = """
import os, torch
model = torch.nn.Linear(2, 2)
model.bias = torch.nn.Parameter(model.bias.detach().double())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(True)
for _ in range(2):
    (model.weight.sum() + model.bias.sum()).backward()
    optimizer.step()
"""
    variables = {"OMP_NUM_THREADS": "3", "MKL_DYNAMIC": "FALSE"}
    # The first two cost time, the others do not.
    variables |= {"CUDA_LAUNCH_BLOCKING": "1", "TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    variables |= {"AMD_SERIALIZE_KERNEL": "0", "NCCL_DEBUG": "WARN"}
    runs.stepscope("record", "-o", tmp_path / "run", "--", *runs.new_script(text), env=runs.environment(**variables))
    (part,) = runs.parts(tmp_path / "run")
    facts = runs.metadata(part)["facts"]
    assert facts["debug_variables"] == "CUDA_LAUNCH_BLOCKING=1 TORCH_DISTRIBUTED_DEBUG=DETAIL"
    assert {"OMP_NUM_THREADS=3", "MKL_DYNAMIC=FALSE"} <= set(facts["thread_variables"].split(" "))
    assert (facts["torch_threads"], facts["cpu_cores_allowed"], facts["anomaly_mode"]) == ("1", "1", "1")
    assert int(facts["cpu_cores"]) in range(1, int(facts["cpu_count"]) + 1)
    assert (facts["parameters"], facts["parameters_float64"]) == ("6", "2")


def test_rank_and_world_size_of_the_launcher_hold_for_every_process(processes, training):
    assert {process["rank"] for process in processes.values()} == {3}
    assert {process["facts"]["world_size"] for process in processes.values()} == {"8"}
    assert runs.analyze("operators", training)["run"]["ranks"] == [3]


def test_rank_and_world_size_of_torch_distributed_win_over_the_environment(tmp_path):
    text = """
import torch, torch.distributed as distributed
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
distributed.all_reduce(torch.ones(2))
distributed.destroy_process_group()
"""
    run = tmp_path / "run"
    runs.record(run, runs.new_script(text), env=runs.environment(RANK=5, WORLD_SIZE=9))
    (part,) = runs.parts(run)
    process = runs.metadata(part)
    assert (process["rank"], process["facts"]["rank"], process["facts"]["world_size"]) == (0, "0", "1")


def test_ranks_that_torchrun_starts_share_a_run(tmp_path):
    run = tmp_path / "run"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    runs.record(run, [*launcher, runs.PROGRAMS / "ranks.py"])
    assert runs.analyze("operators", run)["run"]["ranks"] == [0, 1]
    for rank, calls in ((0, 1), (1, 2)):
        assert runs.counts_of_operators(run, "--rank", rank)["aten::erfinv"] == calls


def test_a_program_that_never_imports_torch_is_left_alone(tmp_path):
    recorded = runs.record(tmp_path / "run", runs.new_script("import sys; print('torch' in sys.modules)"))
    assert recorded.stdout == "False\n"
    assert "nothing was recorded" in recorded.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the call has another number")
def test_memory_is_that_of_the_nodes_to_which_it_is_bound():
    text = """
import ctypes, sys
from stepscope import _facts
lines = _facts._lines
_facts._lines = lambda path, count=None: (
    ["Mems_allowed_list:\\t0-1\\n"] if path == "/proc/self/status" else lines(path, count)
)
before = _facts._memory_nodes()
_facts._memory_nodes.cache_clear()
bind, node_0 = 2, ctypes.c_ulong(1)
if ctypes.CDLL(None).syscall(238, bind, ctypes.byref(node_0), 64):
    sys.exit("no policy")
print(before, _facts._memory_nodes())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    if done.stderr.strip() == "no policy":
        pytest.skip("this system lets nobody bind memory to a node")
    assert done.stdout == "0,1 0\n", done.stderr
