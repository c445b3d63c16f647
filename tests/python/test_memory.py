"""Allocations and frees: torch.profiler is the oracle where it sees them, sums of our own where it does not."""

import json
from collections import defaultdict
from types import SimpleNamespace

import pytest
import runs

HOST = 0


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    run = tmp_path_factory.mktemp("memory") / "run"
    printed = json.loads(runs.execute(*runs.program("memory.py", run)).stdout)
    return SimpleNamespace(run=run, rows=memory_rows(run), **printed)


def memory_rows(run, kind="memory"):
    return [row for row in runs.rows(run) if row["kind"] == kind]


def record_memory(run, text, **options):
    """The rows of memory of a few lines of Python, by kind and process."""
    return runs.stepscope("record", "--memory", "-o", run, "--", *runs.script(text), **options)


def test_the_same_allocations_and_frees_in_the_same_order(step):
    assert len(step.before["bytes"]) > 100
    assert step.before["bytes"] == step.after["bytes"], "the oracle agrees with itself"
    assert [row["bytes"] for row in step.rows] == step.before["bytes"]
    assert {row["bytes"] > 0 for row in step.rows} == {True, False}


def test_the_same_memory_of_every_operator(step):
    result = runs.analyze("memory_statistics", step.run)["results"]
    ours = {row["name"]: (row["size_increase_bytes"], row["self_size_increase_bytes"]) for row in result}
    # Labels and what lies outside of all operators are no operators for us.
    names = {name for name in step.before["operators"] if name not in ("forward", "[memory]") and "#" not in name}
    assert len(names & set(ours)) > 30
    for name in names | set(ours) - {None}:
        assert ours.get(name, (0, 0)) == tuple(step.before["operators"][name]), name


def test_what_a_row_says(step):
    assert {(row["device_type"], row["device_index"]) for row in step.rows} == {(HOST, None)}
    assert {row["thread_name"] for row in step.rows} == {"MainThread"}
    assert all(row["address"] and row["dur_ns"] == 0 and row["name"] == "memory" for row in step.rows)
    before = step.rows[0]
    for row in step.rows[1:]:
        assert row["allocated_bytes"] == before["allocated_bytes"] + row["bytes"]
        before = row


def test_totals_are_the_sum_of_what_is_alive(tmp_path):
    """From the start of the process: by brute force over the addresses."""
    text = """
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(64, 64)
for _ in range(5):
    model(torch.ones(32, 64)).sum().backward()
    model.zero_grad()
"""
    run = tmp_path / "run"
    record_memory(run, text)
    alive, peak = {}, 0
    for row in memory_rows(run):
        if row["bytes"] > 0:
            assert row["address"] not in alive
            alive[row["address"]] = row["bytes"]
        else:
            assert alive.pop(row["address"]) == -row["bytes"]
        assert row["allocated_bytes"] == sum(alive.values())
        peak = max(peak, sum(alive.values()))
    (statistics,) = runs.analyze("memory_peak", run)["results"][:1]
    assert statistics["peak_bytes"] == peak > 0


def test_an_allocation_that_fails(tmp_path):
    text = """
import torch
kept = torch.ones(1000)
with torch.profiler.record_function("too much"):
    try:
        torch.empty(10 ** 15, dtype=torch.uint8)
    except RuntimeError as error:
        print("caught")
torch.ones(3)
"""
    run = tmp_path / "run"
    assert record_memory(run, text).stdout == "caught\n"
    (row,) = memory_rows(run, "out_of_memory")
    assert (row["bytes"], row["address"], row["device_type"]) == (10**15, None, HOST)
    assert row["allocated_bytes"] >= 4000
    (label,) = runs.named(runs.ops(run), "too much")
    assert label["start_ns"] < row["start_ns"] < label["start_ns"] + label["dur_ns"]
    chrome = tmp_path / "trace.json"
    runs.stepscope("convert", run, "-o", chrome)
    (event,) = [event for event in json.loads(chrome.read_text())["traceEvents"] if event["name"] == "[OutOfMemory]"]
    assert event["args"].items() >= {"Bytes": 10**15, "Device Type": 0, "Device Id": -1}.items()
    assert "Addr" not in event["args"]
    (finding,) = [row for row in runs.analyze("findings", run)["results"] if row["code"] == "trace.out_of_memory"]
    assert finding["count"] == 1
    assert f"the host of rank 0: 1, the first of {10**15} bytes at " in str(finding)
    assert "allocations failed for lack of memory" in runs.stepscope("report", run).stdout


THREADS = """
import threading, torch
torch.set_num_threads(1)
SIZE = 1_000_003

def here_and_gone(bytes):
    torch.empty(bytes, dtype=torch.uint8)

threads = [threading.Thread(target=here_and_gone, args=(SIZE + i,), name=f"worker {i}") for i in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]

box = [torch.empty(SIZE + 10, dtype=torch.uint8)]
dropper = threading.Thread(target=box.clear, name="dropper")
dropper.start()
dropper.join()

weight = torch.ones(SIZE + 20, dtype=torch.float16, requires_grad=True)
backward = threading.Thread(target=(weight * 2).sum().backward, name="backward")
backward.start()
backward.join()
"""


def test_every_thread_is_seen(tmp_path):
    run = tmp_path / "run"
    record_memory(run, THREADS)
    seen = defaultdict(list)
    for row in memory_rows(run):
        if abs(row["bytes"]) >= 1_000_003:
            seen[row["thread_name"]].append(row["bytes"])
    for i in range(3):
        assert seen[f"worker {i}"] == [1_000_003 + i, -1_000_003 - i]
    assert 1_000_013 in seen["MainThread"]
    assert seen["dropper"] == [-1_000_013], "a thread that runs no operator at all"
    assert 2_000_046 in seen["backward"]


def test_forked_workers_are_seen(tmp_path):
    text = """
import os, torch
kept = torch.empty(1_000_003, dtype=torch.uint8)
if os.fork() == 0:
    torch.empty(2_000_003, dtype=torch.uint8)
    del kept
    from stepscope import _recording
    _recording.close_capture()
    os._exit(0)
os.wait()
torch.empty(3_000_017, dtype=torch.uint8)
"""
    run = tmp_path / "run"
    record_memory(run, text)
    by_process = defaultdict(list)
    for row in memory_rows(run):
        if abs(row["bytes"]) > 1_000_000:
            by_process[row["pid"]].append(row["bytes"])
    ours = [1_000_003, 3_000_017, -3_000_017]
    assert sorted(by_process.values(), key=lambda sizes: sizes[:3] != ours)[0][:3] == ours
    assert [2_000_003, -2_000_003, -1_000_003] in by_process.values()


def test_what_was_allocated_before_is_freed_in_silence(tmp_path):
    """PyTorch does not know its size: no event, and no total below 0."""
    text = f"""
import torch
from stepscope.profiler import profile
old = torch.empty(1_000_003, dtype=torch.uint8)
with profile(run={str(tmp_path / "run")!r}, profile_memory=True):
    del old
    new = torch.empty(2_000_003, dtype=torch.uint8)
del new
"""
    runs.execute(*runs.script(text))
    rows = memory_rows(tmp_path / "run")
    assert [row["bytes"] for row in rows] == [2_000_003]
    assert [row["allocated_bytes"] for row in rows] == [2_000_003]


def test_windows_and_later_recordings_say_that_totals_may_be_too_high(tmp_path):
    text = f"""
import torch
from stepscope.profiler import profile
with profile(run={str(tmp_path / "first")!r}, profile_memory=True):
    kept = torch.empty(1_000_003, dtype=torch.uint8)
del kept
with profile(run={str(tmp_path / "second")!r}, profile_memory=True):
    torch.empty(2_000_003, dtype=torch.uint8)
"""
    runs.execute(*runs.script(text))
    code = "capture.memory_total_too_high"
    assert code not in runs.findings(tmp_path / "first")
    assert runs.findings(tmp_path / "second")[code]["count"] == 1
    assert [row["bytes"] for row in memory_rows(tmp_path / "second")] == [2_000_003, -2_000_003]


def test_without_the_option_there_is_no_memory(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.script("import torch; torch.ones(1000).sum()"))
    assert memory_rows(run) == []
    assert runs.named(runs.ops(run), "aten::ones")


def test_threads_that_end_while_their_memory_is_freed_late(tmp_path):
    """Tensors that only the thread's own storage holds are freed when Python takes that apart, and at its exit."""
    text = """
import threading, torch
local = threading.local()
everywhere = []

def work(i):
    local.kept = torch.empty(10_007 + i, dtype=torch.uint8)
    everywhere.append(torch.empty(20_011, dtype=torch.uint8))

for i in range(300):
    thread = threading.Thread(target=work, args=(i,))
    thread.start()
    thread.join()
print(len(everywhere))
"""
    run = tmp_path / "run"
    assert record_memory(run, text).stdout == "300\n"
    sizes = [row["bytes"] for row in memory_rows(run)]
    for i in range(300):
        assert sizes.count(10_007 + i) == 1
    assert min(row["allocated_bytes"] for row in memory_rows(run)) >= 0


def test_a_killed_process_keeps_what_it_had_recorded(tmp_path):
    text = """
import os, signal, torch
kept = []
for i in range(20_000):
    kept.append(torch.empty(100 + i % 7, dtype=torch.uint8))
    if i % 3 == 0:
        kept.pop(0)
torch.ones(1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = tmp_path / "run"
    record_memory(run, text, code=128 + 9)
    rows = [row for row in memory_rows(run) if 100 <= abs(row["bytes"]) < 107]
    assert [row["bytes"] for row in rows if row["bytes"] > 0] == [100 + i % 7 for i in range(20_000)]
    assert len([row for row in rows if row["bytes"] < 0]) == 6_667
    assert "capture.process_killed" in runs.findings(run)


TRAINING = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
optimizer = torch.optim.AdamW(model.parameters())
def passes():
    optimizer.zero_grad()
    loss = model(torch.ones(512, 256)).mean()
    loss.backward()
    return loss
for _ in range(3):
    {step}
"""


def test_memory_of_a_closure_is_for_what_it_is_without_one(tmp_path):
    def bytes_by_category(name, step):
        record_memory(tmp_path / name, TRAINING.format(step=step))
        rows = runs.analyze("memory_peak", tmp_path / name, "--group-by", "category")["results"]
        return {row["name"]: row["bytes"] for row in rows if row["name"] != "unknown"}

    plain = bytes_by_category("plain", "passes(); optimizer.step()")
    assert plain.keys() >= {"activation", "gradient", "optimizer_state"}
    assert bytes_by_category("closure", "optimizer.step(passes)") == plain
