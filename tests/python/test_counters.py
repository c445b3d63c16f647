"""Counters of the process, and Python's garbage collections."""

import errno
import json
import os
import pathlib
import time

import pytest
import runs

PROGRAM = """
import gc, resource, sys, time
import torch
from stepscope.profiler import profile
gc.disable()
with profile(run=sys.argv[1]):
    torch.ones(1).erf()
    time.sleep(0.3)
    before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    while sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) < before + 0.5:
        pass
    memory = bytearray(200 << 20)
    memory[::4096] = b"1" * len(memory[::4096])
    time.sleep(0.5)
    for generation in (0, 2, 1):
        gc.collect(generation)
usage = resource.getrusage(resource.RUSAGE_SELF)
gc.collect()
print([usage.ru_utime, usage.ru_stime])
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    run = tmp_path_factory.mktemp("counters") / "run"
    times = json.loads(runs.execute(*runs.script(PROGRAM, run)).stdout)
    return run, times, runs.rows(run)


def samples(rows, name):
    return sorted((row["start_ns"], row["value"]) for row in rows if row["kind"] == "counter" and row["name"] == name)


def test_memory_grows_by_what_is_allocated(recorded):
    values = [value for _, value in samples(recorded[2], "process memory (bytes)")]
    grown = values[-1] - values[0]
    assert 200 << 20 <= grown < 260 << 20


def test_cpu_time_grows_as_the_system_says(recorded):
    _, (user, system), rows = recorded
    for name, seconds in (("process CPU user (ns)", user), ("process CPU system (ns)", system)):
        values = [value for _, value in samples(rows, name)]
        assert values == sorted(values) and values[-1] <= round(seconds * 1e9)
    total = [
        user + system
        for (_, user), (_, system) in zip(
            samples(rows, "process CPU user (ns)"), samples(rows, "process CPU system (ns)")
        )
    ]
    assert total[-1] - total[0] >= 0.5e9


def test_samples_are_taken_all_the_time(recorded):
    times = [time for time, _ in samples(recorded[2], "process memory (bytes)")]
    assert len(times) >= 5


def test_counters_are_in_chrome_json(recorded, tmp_path):
    runs.stepscope("convert", recorded[0], "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    counters = [event for event in events if event["ph"] == "C" and event["name"] == "process memory (bytes)"]
    assert len(counters) == len(samples(recorded[2], "process memory (bytes)"))


def test_collections_with_their_generation(recorded):
    collections = [row for row in recorded[2] if row["kind"] == "garbage_collection"]
    assert [row["value"] for row in collections] == [0, 2, 1]
    assert {(row["name"], row["sequence_number"]) for row in collections} == {("Python GC", None)}
    assert all(row["dur_ns"] > 0 and not row["is_unfinished"] for row in collections)


HOST = """
import time, torch, sys
from stepscope.profiler import profile

def numbers(path, begin):
    (line,) = [line for line in open(path) if line.split()[:1] == [begin]]
    return [int(word) for word in line.split()[1:] if word.isdigit()]

def said():
    user, nice = numbers("/proc/stat", "cpu")[:2]
    received = sum(int(line.split(":")[1].split()[0]) for line in list(open("/proc/net/dev"))[2:])
    return [(user + nice) * 10_000_000, numbers("/proc/meminfo", "MemAvailable:")[0] * 1024, received]

before = said()
with profile(run=sys.argv[1]):
    torch.ones(1).erf()
    time.sleep(2.5)
print([before, said()])
"""


def test_counters_of_the_machine_are_what_the_system_says(tmp_path):
    before, after = json.loads(runs.execute(*runs.script(HOST, tmp_path / "run")).stdout)
    rows = runs.rows(tmp_path / "run")
    user = [value for _, value in samples(rows, "host CPU user (ns)")]
    assert len(user) in (2, 3, 4)
    assert [before[0], *user, after[0]] == sorted([before[0], *user, after[0]])
    memory = [value for _, value in samples(rows, "host available memory (bytes)")]
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert len(memory) == len(user) and all(0 < value <= total for value in memory)
    received = [row["name"] for row in rows if row["name"].startswith("network ")]
    assert all(name.endswith((" received (bytes)", " sent (bytes)")) for name in received)


def test_one_process_of_a_host_has_its_counters(tmp_path):
    text = """
import os, sys, time, torch, multiprocessing
from stepscope.profiler import profile
def work():
    torch.ones(1).erf()
    time.sleep(1.2)
if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    work()
    worker.join()
"""
    for local_rank in ("0", "1"):
        launcher = {"RANK": local_rank, "WORLD_SIZE": "2", "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": "2"}
        run = tmp_path / local_rank
        runs.stepscope("record", "-o", run, "--", *runs.new_script(text), env=runs.environment(**launcher))
        rows = [row for row in runs.rows(run) if row["kind"] == "counter"]
        assert len({row["pid"] for row in rows if row["name"] == "process memory (bytes)"}) == 2
        of_host = {row["pid"] for row in rows if row["name"].startswith("host ")}
        assert len(of_host) == (1 if local_rank == "0" else 0)


QUOTA = """
import json, os, pathlib, sys, time
import torch
from stepscope.profiler import profile
group = pathlib.Path(sys.argv[2])
(group / "cgroup.procs").write_text(str(os.getpid()))

def said():
    stat = dict(line.split() for line in (group.parent / "cpu.stat").read_text().splitlines())
    return [int(stat["nr_periods"]), int(stat["nr_throttled"])]

before = said()
with profile(run=sys.argv[1]):
    torch.ones(1).erf()
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        pass
print(json.dumps([before, said()]))
"""


def remove(group):
    """A process leaves its control group some time after it has ended."""
    end = time.monotonic() + 60
    while True:
        try:
            return group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
        time.sleep(0.05)


@pytest.fixture
def group():
    """A control group around another one, of which the outer one may take a quarter of a processor."""
    root = pathlib.Path("/sys/fs/cgroup")
    root = root if (root / "cgroup.subtree_control").exists() else root / "cpu"
    outer = root / f"stepscope-test-{os.getpid()}"
    try:
        outer.mkdir()
    except OSError:
        pytest.skip("this process may make no control group")
    inner = outer / "job"
    try:
        if (outer / "cpu.max").exists():
            (outer / "cgroup.subtree_control").write_text("+cpu")
            (outer / "cpu.max").write_text("25000 100000")
        elif (outer / "cpu.cfs_quota_us").exists():
            (outer / "cpu.cfs_quota_us").write_text("25000")
        else:
            pytest.skip("control groups have no quotas here")
        inner.mkdir()
        yield inner
    finally:
        for folder in filter(pathlib.Path.exists, (inner, outer)):
            remove(folder)


def test_the_quota_of_a_group_around_that_of_the_process_counts(tmp_path, group):
    stdout = runs.execute(*runs.new_script(QUOTA, tmp_path / "run", group)).stdout
    before, after = json.loads(stdout)
    rows = runs.rows(tmp_path / "run")
    assert {value for _, value in samples(rows, "control group CPU quota (millicores)")} == {250}
    periods = [value for _, value in samples(rows, "control group CPU periods")]
    stopped = [value for _, value in samples(rows, "control group CPU periods throttled")]
    for at, values in enumerate((periods, stopped)):
        assert [before[at], *values, after[at]] == sorted([before[at], *values, after[at]])
    assert len(periods) == len(stopped) >= 2 and stopped[-1] > stopped[0]
    assert len(samples(rows, "process swap (bytes)")) == len(periods)
