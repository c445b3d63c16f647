"""``--gpu torch``: what a session of torch.profiler tells of devices is merged into the run, by clock and by thread.

A trace that was recorded on a GPU is exported in place of the session's, moved to the run's time and thread.
"""

import collections
import gzip
import json

import pytest
import runs
from stand_in_device import DEVICE

FIXTURE = "tests/fixtures/kineto/a100_event_sync_multi_stream.json.gz"
DEVICE_ROWS = ("kernel", "gpu_memcpy", "gpu_memset")

# argv: the fixture, how the session names the thread, how many windows.
PROGRAM = (
    DEVICE
    + """
import gzip, json, os, threading, time

fixture = json.load(gzip.open(sys.argv[1], "rt"))
base_ns = 1_750_000_000_000_000_000
thread = {"system": threading.get_native_id(), "handle": threading.get_ident() & 0xFFFFFFFF}[sys.argv[2]]
thread -= (1 << 32) * (sys.argv[2] == "handle" and thread >= 1 << 31)  # As a signed number, like Kineto's.

class Session:
    def __init__(self, activities):
        assert [activity.name for activity in activities] == ["CUDA"]

    def prepare_trace(self):
        print("prepared", threading.current_thread().name)

    def start_trace(self):
        self.began_ns = time.time_ns()

    def stop_trace(self):
        print("stopped")

    def export_chrome_trace(self, path):
        rows = [row for row in fixture["traceEvents"] if row.get("cat") != "Trace"]
        first_us = min(row["ts"] for row in rows if row["ph"] == "X")
        main = next(row["tid"] for row in rows if row.get("cat") == "cuda_runtime")
        for row in rows:
            if "ts" in row:
                ns = self.began_ns + (row["ts"] - first_us) * 1000 + 20_000_000 - base_ns
                row["ts"] = round(ns / 1000, 3)
            if row.get("pid") == main:
                row["pid"] = os.getpid()
            if row.get("tid") == main:
                row["tid"] = thread
        with gzip.open(path, "wt") as file:
            json.dump({"baseTimeNanoseconds": base_ns, **fixture, "traceEvents": rows}, file)

torch.profiler.profiler._KinetoProfile = Session
torch.profiler.supported_activities = lambda: set(torch.profiler.ProfilerActivity.__members__.values())

@torch.library.custom_op("tests::slow", mutates_args=())
def slow(x: torch.Tensor) -> torch.Tensor:
    time.sleep(0.3)
    return x.clone()

@torch.library.custom_op("tests::first", mutates_args=())
def first(x: torch.Tensor) -> torch.Tensor:
    torch.cuda.init()
    return x.clone()

first(torch.ones(1))
slow(torch.ones(1))
"""
)


def record(tmp_path, checkout, program, *arguments, options=()):
    """Record a program below the command, as if there were a driver."""
    environment = runs.environment(STEPSCOPE_CUPTI=tmp_path / "not-there")
    command = ["record", "--gpu", "torch", *options, "-o", tmp_path / "run", "--"]
    return runs.stepscope(*command, *runs.script(program, checkout / FIXTURE, *arguments), env=environment)


def chrome_rows(path):
    with gzip.open(path, "rt") as file:
        return [row for row in json.load(file)["traceEvents"] if row["ph"] == "X"]


def essence(row):
    """What must be the same, whoever writes it; the rest is derived."""
    args = row["args"]
    keys = ("device", "stream", "bytes", "grid", "block", "registers per thread", "shared memory")
    return (row["name"], row["dur"], *(json.dumps(args.get(key)) for key in keys))


@pytest.mark.parametrize("thread", ["system", "handle"])
def test_a_session_becomes_part_of_the_run(tmp_path, checkout, thread):
    told = record(tmp_path, checkout, PROGRAM, thread)
    assert told.stdout.splitlines() == ["prepared stepscope gpu", "stopped"], told.stderr
    run = tmp_path / "run"
    assert [path.suffixes for path in (run / "device").iterdir()] == [[".json", ".gz"]]
    runs.stepscope("recover", run)
    runs.stepscope("convert", run, "-o", tmp_path / "out.json.gz")
    expected, found = chrome_rows(checkout / FIXTURE), chrome_rows(tmp_path / "out.json.gz")

    def of(rows, *categories):
        return [row for row in rows if row.get("cat") in categories]

    wanted = collections.Counter(map(essence, of(expected, *DEVICE_ROWS)))
    assert wanted.total() == 6
    assert collections.Counter(map(essence, of(found, *DEVICE_ROWS))) == wanted
    # Each is launched by the same call, at the same distance.
    assert launches(found) == launches(expected)
    calls = of(found, "cuda_runtime", "cuda_driver")
    names = collections.Counter(row["name"] for row in of(expected, "cuda_runtime", "cuda_driver"))
    assert collections.Counter(row["name"] for row in calls) == names
    # On the thread that called, inside of what ran there, and 20 ms after the session began.
    (slow,) = [row for row in found if row["name"] == "tests::slow"]
    assert {(row["pid"], row["tid"]) for row in calls} == {(slow["pid"], slow["tid"])}
    assert all(slow["ts"] < row["ts"] and row["ts"] + row["dur"] < slow["ts"] + slow["dur"] for row in calls)
    synchronizations = collections.Counter(row["dur"] for row in of(expected, "cuda_sync"))
    assert collections.Counter(row["dur"] for row in of(found, "cuda_sync")) == synchronizations
    kernels = runs.analyze("kernels", run)["results"]
    by_name = collections.Counter()
    for row in of(expected, "kernel"):
        by_name[row["name"]] += round(row["dur"] * 1000)
    assert {row["name"]: row["total_ns"] for row in kernels} == dict(by_name)
    devices = runs.analyze("gpu_utilization", run)["results"] if thread == "system" else None
    assert devices is None or len(devices) == 1
    # The session's own operators are left out, since the recorder has them.
    assert not any(row["name"] == "aten::matmul" for row in found)
    assert "capture.device_not_recorded" not in runs.findings(run)


def launches(rows):
    """Of each piece of device work: by which call it was launched, and how long before."""
    calls = {row["args"]["correlation"]: row for row in rows if row.get("cat") in ("cuda_runtime", "cuda_driver")}
    work = [row for row in rows if row.get("cat") in DEVICE_ROWS]
    joined = [(row, calls[row["args"]["correlation"]]) for row in work]
    return sorted((row["name"], call["name"], round(row["ts"] - call["ts"])) for row, call in joined)


def test_a_file_that_is_lost_or_cut_is_a_finding(tmp_path, checkout):
    record(tmp_path, checkout, PROGRAM, "system")
    (file,) = (tmp_path / "run" / "device").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert "is missing" in example
    file.unlink()
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert "is not there" in example


def test_a_session_for_each_window(tmp_path, checkout):
    text = PROGRAM.replace("slow(torch.ones(1))\n", "") + """
optimizer = torch.optim.SGD([torch.zeros(4, requires_grad=True)], lr=0.001)
for step in range(8):
    torch.erfinv(torch.ones(1))
    optimizer.step()
"""
    options = ["--schedule", "wait=1,warmup=1,active=1,repeat=2"]
    told = record(tmp_path, checkout, text, "system", options=options)
    assert told.stdout.splitlines() == ["prepared stepscope gpu", "stopped"] * 2, told.stderr
    assert len(list((tmp_path / "run" / "device").iterdir())) == 2
    kernels = runs.analyze("kernels", tmp_path / "run")["results"]
    assert sum(row["count"] for row in kernels) == 2 * 3


def test_a_forked_child_has_a_file_of_its_own(tmp_path, checkout):
    text = PROGRAM + """
def child():
    # A child may use a device that its parent has not used; here it is made to look so.
    from stepscope import _device
    torch.cuda._initialized = False
    _device._state["watched"].clear()
    _device._watch_first_use(torch)
    first(torch.ones(1))
    slow(torch.ones(1))

import multiprocessing
for _ in range(2):
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
"""
    told = record(tmp_path, checkout, text, "system")
    assert told.stdout.splitlines().count("stopped") == 3, told.stderr
    files = list((tmp_path / "run" / "device").iterdir())
    assert len({file.name.partition("-")[0] for file in files}) == len(files) == 3
    kernels = runs.analyze("kernels", tmp_path / "run")["results"]
    assert sum(row["count"] for row in kernels) == 3 * 3


def test_a_session_that_fails_is_said_once(tmp_path, checkout):
    text = PROGRAM.replace('print("prepared", threading.current_thread().name)', 'raise RuntimeError("no Kineto")')
    told = record(tmp_path, checkout, text, "system")
    assert told.stderr.count("not recording the GPU") == 1 and told.stdout == ""
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert example.endswith("no Kineto")
    assert len(runs.named(runs.ops(tmp_path / "run"), "tests::slow")) == 1


def test_without_a_driver_it_is_said(tmp_path):
    run = tmp_path / "run"
    told = runs.stepscope("record", "--gpu", "torch", "-o", run, "--", *runs.script("import torch; torch.ones(2).exp()"))
    assert "not recording the GPU" in told.stderr and "there is no GPU driver here" in told.stderr
    (example,) = runs.findings(run)["capture.device_not_recorded"]["examples"]
    assert example.endswith("--gpu=torch: there is no GPU driver here")


def test_a_ring_is_refused(tmp_path):
    told = runs.execute(runs.COMMAND, "record", "--gpu", "torch", "--ring", "30s", "--", "true", code=2)
    assert "--gpu torch does not go with --ring" in told.stderr
