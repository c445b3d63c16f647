"""``--gpu torch``: what a session of torch.profiler tells of devices is merged into the run, by clock and by thread.

A trace that was recorded on a GPU is exported in place of the session's, moved to the run's time and thread.
"""

import collections
import gzip
import json
import shutil

import pyarrow.parquet
import pytest
import runs
from kineto_results import KinetoEvent, event_list
from stand_in_device import DEVICE
from stepscope.profiler import ProfilerActivity, profile
from torch.autograd import DeviceType

FIXTURE = "tests/fixtures/kineto/a100_event_sync_multi_stream.json.gz"
DEVICE_ROWS = ("kernel", "gpu_memcpy", "gpu_memset")

# argv: the fixture, how the session names the thread, how many windows.
PROGRAM = (
    DEVICE
    + """
import gzip, json, os, threading, time
from stepscope.profiler._activities import experimental_values

fixture = json.load(gzip.open(sys.argv[1], "rt"))
base_ns = 1_750_000_000_000_000_000
handle = threading.get_ident() & 0xFFFFFFFF
handle -= (1 << 32) * (handle >= 1 << 31)  # As a signed number, like Kineto's, which may write how large it is.
thread = {"system": threading.get_native_id(), "handle": handle, "magnitude": abs(handle)}[sys.argv[2]]

class Session:
    def __init__(self, activities, experimental_config):
        assert [activity.name for activity in activities] == ["CUDA"]
        assert experimental_values(experimental_config) == {"enable_cuda_sync_events": True}

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


def record(tmp_path, checkout, program, *arguments, options=(), script=runs.script):
    """Record a program below the command, as if there were a driver."""
    environment = runs.environment(STEPSCOPE_CUPTI=tmp_path / "not-there")
    command = ["record", "--gpu", "torch", *options, "-o", tmp_path / "run", "--"]
    return runs.stepscope(*command, *script(program, checkout / FIXTURE, *arguments), env=environment)


def chrome_rows(path):
    with gzip.open(path, "rt") as file:
        return [row for row in json.load(file)["traceEvents"] if row["ph"] == "X"]


def essence(row):
    """What must be the same in both files; the rest is derived."""
    args = row["args"]
    keys = ("device", "stream", "bytes", "grid", "block", "registers per thread", "shared memory")
    return (row["name"], row["dur"], *(json.dumps(args.get(key)) for key in keys))


@pytest.mark.parametrize("thread", ["system", "handle", "magnitude"])
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


# At the end of the process, when the file is complete: what becomes of it before the capture is a part.
TROUBLE = """
import atexit, glob, gzip, os
@atexit.register  # Before Stepscope's own, so that it runs after it.
def trouble():
    (path,) = glob.glob(os.environ["STEPSCOPE_RUN"] + "/device/*")
    {what}
"""
TROUBLES = {
    "os.remove(path)": ("what PyTorch's profiler told is not there: device/", 0),
    "text = gzip.open(path).read(); gzip.open(path, 'wb').write(text.rpartition(b'grid')[0])": (
        "the end of what PyTorch's profiler told cannot be read: ",
        2,
    ),
    "open(path, 'wb').write(b'no trace')": ("expected JSON", 0),
}


@pytest.mark.parametrize("what", TROUBLES)
def test_a_file_that_is_lost_cut_or_damaged_is_a_finding(tmp_path, checkout, what):
    said, kernels = TROUBLES[what]
    # In a new process, where Stepscope begins after the program has registered what it does at the end.
    record(tmp_path, checkout, TROUBLE.format(what=what) + PROGRAM, "system", script=runs.new_script)
    run = tmp_path / "run"
    assert len(kernels_of(*runs.parts(run))) == kernels
    for _ in range(2):
        (example,) = runs.findings(run)["capture.device_not_recorded"]["examples"]
        assert said in example
    assert sum(row["count"] for row in runs.analyze("kernels", run)["results"]) == kernels
    # What the process itself did is there.
    assert len(runs.named(runs.ops(run), "tests::slow")) == 1


def test_a_session_for_each_window(tmp_path, checkout):
    text = (
        PROGRAM.replace("slow(torch.ones(1))\n", "")
        + """
optimizer = torch.optim.SGD([torch.zeros(4, requires_grad=True)], lr=0.001)
for step in range(8):
    torch.erfinv(torch.ones(1))
    optimizer.step()
"""
    )
    options = ["--schedule", "wait=1,warmup=1,active=1,repeat=2"]
    told = record(tmp_path, checkout, text, "system", options=options)
    assert told.stdout.splitlines() == ["prepared stepscope gpu", "stopped"] * 2, told.stderr
    assert len(list((tmp_path / "run" / "device").iterdir())) == 2
    kernels = runs.analyze("kernels", tmp_path / "run")["results"]
    assert sum(row["count"] for row in kernels) == 2 * 3


def test_a_forked_child_has_a_file_of_its_own(tmp_path, checkout):
    text = (
        PROGRAM
        + """
def child():
    # A child may use a device that its parent has not used; here it is made to look so.
    from stepscope import _device
    torch.cuda._initialized = False
    _device._state.watched_kinds.clear()
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
    )
    told = record(tmp_path, checkout, text, "system")
    assert told.stdout.splitlines().count("stopped") == 3, told.stderr
    files = list((tmp_path / "run" / "device").iterdir())
    assert len({file.name.partition("-")[0] for file in files}) == len(files) == 3
    kernels = runs.analyze("kernels", tmp_path / "run")["results"]
    assert sum(row["count"] for row in kernels) == 3 * 3


def test_a_forked_child_does_not_repeat_a_session_that_was_over_before(tmp_path, checkout):
    text = (
        PROGRAM.replace("slow(torch.ones(1))\n", "")
        + """
import multiprocessing

optimizer = torch.optim.SGD([torch.zeros(4, requires_grad=True)], lr=0.001)
for step in range(8):
    torch.erfinv(torch.ones(1))
    if step == 5:
        process = multiprocessing.get_context("fork").Process(target=lambda: torch.digamma(torch.ones(1)))
        process.start()
        process.join()
        assert process.exitcode == 0
    optimizer.step()
"""
    )
    record(tmp_path, checkout, text, "system", options=["--schedule", "wait=1,warmup=1,active=1,repeat=2"])
    (in_child,) = runs.named(runs.ops(tmp_path / "run"), "aten::digamma")
    (parts, in_parent) = runs.parts(tmp_path / "run"), runs.named(runs.ops(tmp_path / "run"), "aten::erfinv")
    assert len(parts) == 2 and len({row["pid"] for row in [in_child, *in_parent]}) == 2
    assert sum(map(len, map(kernels_of, parts))) == 2 * 3
    kernels = runs.analyze("kernels", tmp_path / "run")["results"]
    assert sum(row["count"] for row in kernels) == 2 * 3


def kernels_of(part):
    """The kernels that stand in a part itself."""
    return [row for row in pyarrow.parquet.read_table(part).to_pylist() if row["kind"] == "kernel"]


def test_a_part_has_the_rows_and_needs_the_file_no_longer(tmp_path, checkout):
    record(tmp_path, checkout, PROGRAM, "handle")
    (part,) = runs.parts(tmp_path / "run")
    wanted = [row for row in chrome_rows(checkout / FIXTURE) if row.get("cat") == "kernel"]
    found = [(row["name"], row["dur_ns"], row["stream"]) for row in kernels_of(part)]
    assert sorted(found) == sorted((row["name"], row["dur"] * 1000, row["args"]["stream"]) for row in wanted)
    told = {
        name: runs.analyze(name, tmp_path / "run")["results"] for name in ("kernels", "launch_statistics", "operators")
    }
    assert told["launch_statistics"]
    shutil.rmtree(tmp_path / "run" / "device")
    assert {name: runs.analyze(name, tmp_path / "run")["results"] for name in told} == told
    assert "capture.device_not_recorded" not in runs.findings(tmp_path / "run")


# What the program's own profiler object lists in each cycle, and what it lists again after all of them.
CYCLES = """
from stepscope.profiler import ProfilerActivity, profile, schedule

def told(prof):
    events = [event for event in prof.events(all_threads=True) if not event.name.startswith("ProfilerStep")]
    averages = prof.key_averages(all_threads=True)
    prof.export_chrome_trace(sys.argv[3] + "/trace.json")
    rows = json.load(open(sys.argv[3] + "/trace.json"))["traceEvents"]
    print(json.dumps({
        "events": [
            (event.name, event.activity_type, event.device_resource_id, round(event.time_range.start * 1000),
             round(event.time_range.end * 1000), event.thread)
            for event in events
        ],
        "averages": [
            (average.key, average.count, average.device_type.name, average.device_time_total, average.self_device_time_total)
            for average in averages
            if not average.key.startswith("ProfilerStep")
        ],
        "columns": "Self CUDA" in averages.table(),
        "rows": sum(row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") for row in rows),
    }))

torch.cuda.init()
activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
steps = schedule(wait=1, warmup=1, active=1, repeat=2)
with profile(activities=activities, gpu="torch", schedule=steps, on_trace_ready=told, run=sys.argv[3] + "/run") as prof:
    for step in range(6):
        slow(torch.ones(1))
        prof.step()
os.system(f"{sys.executable} -m stepscope recover {sys.argv[3]}/run >&2")
told(prof)
"""


@pytest.fixture(scope="module")
def cycles(tmp_path_factory, checkout):
    """What the program told after its first and second cycle, and when the run was a part; and its run."""
    folder = tmp_path_factory.mktemp("cycles")
    program = PROGRAM.replace("first(torch.ones(1))\nslow(torch.ones(1))\n", "") + CYCLES
    environment = runs.environment(STEPSCOPE_CUPTI=folder / "not-there")
    told = runs.execute(*runs.script(program, checkout / FIXTURE, "handle", folder), env=environment).stdout
    lines = told.splitlines()
    assert lines.count("prepared stepscope gpu") == lines.count("stopped") == 2, told
    return [json.loads(line) for line in lines if line.startswith("{")], folder / "run"


def test_a_profiler_inside_another_has_what_was_told_until_its_end(tmp_path, checkout):
    """What the session has heard is written then, and another one goes on for the outer profiler."""
    text = """
import warnings
from stepscope.profiler import profile

def kernels(prof):
    return sum(event.activity_type == "kernel" for event in prof.events(all_threads=True))

torch.cuda.init()
warnings.simplefilter("error")
with profile(gpu="torch", run=sys.argv[3] + "/run") as outer:
    with profile(gpu="torch") as inner:
        slow(torch.ones(1))
    of_inner = kernels(inner)
    slow(torch.ones(1))
print(of_inner, kernels(inner), kernels(outer))
"""
    program = PROGRAM.replace("first(torch.ones(1))\nslow(torch.ones(1))\n", "") + text
    environment = runs.environment(STEPSCOPE_CUPTI=tmp_path / "not-there")
    told = runs.execute(*runs.script(program, checkout / FIXTURE, "handle", tmp_path), env=environment).stdout
    (of_inner, again, of_outer) = map(int, told.splitlines()[-1].split())
    assert told.splitlines().count("stopped") == 2
    assert 0 < of_inner == again and of_outer == 2 * of_inner


def test_a_programs_own_lists_have_what_the_session_told(cycles, checkout):
    """As PyTorch's Python code lists the same rows, when they lie in the same operator."""
    told, run = cycles
    assert len(told) == 3
    rows = [row for row in chrome_rows(checkout / FIXTURE) if row["cat"] in (*DEVICE_ROWS, "cuda_runtime")]
    for of_cycle in told:
        (slow,) = [event for event in of_cycle["events"] if event[0] == "tests::slow"]
        began_us = min(row["ts"] for row in rows)
        calls = [event for event in of_cycle["events"] if event[1] == "cuda_runtime"]
        place_ns = min(event[3] for event in calls) - 1000 * began_us
        theirs = event_list(kineto_events(of_cycle["events"], rows, slow, place_ns), "cuda")
        wanted = [
            (event.name, round(event.time_range.start * 1000), round(event.time_range.end * 1000)) for event in theirs
        ]
        # Files have whole microseconds, and their place is known to one.
        for (name, *span), expected in zip([(event[0], *event[3:5]) for event in of_cycle["events"]], wanted):
            assert name == expected[0] and span == pytest.approx(expected[1:], abs=1000), (name, expected)
        assert len(wanted) == len(of_cycle["events"])
        averages = [
            (
                average.key,
                average.count,
                average.device_type.name,
                average.device_time_total,
                average.self_device_time_total,
            )
            for average in theirs.key_averages()
        ]
        assert [tuple(average) for average in of_cycle["averages"]] == averages
        total = sum(row["dur"] for row in rows if row["cat"] in DEVICE_ROWS)
        assert ("tests::slow", 1, "CPU", total, total) in averages
        assert of_cycle["columns"] and of_cycle["rows"] == 6
    # Each cycle has its own, and after the run became a part the last one has the same.
    assert told[2] == told[1]
    assert sum(row["count"] for row in runs.analyze("kernels", run)["results"]) == 2 * 3
    assert sum(map(len, map(kernels_of, runs.parts(run)))) == 2 * 3


def kineto_events(events, rows, slow, place_ns):
    """The host's events as Kineto would hand them over, and the file's rows at their place, all of them of one operator."""
    made = []
    for number, (name, kind, resource, start_ns, end_ns, thread) in enumerate(events):
        if kind == "cpu_op":
            numbers = dict.fromkeys(("correlation_id", "external_id"), 1_000_000 + number)
            place = {"device_index": 0, "device_resource_id": resource}
            made.append(KinetoEvent(name, start_ns, end_ns, thread, **place, **numbers))
    operator = 1_000_000 + events.index(slow)
    for row in rows:
        start_ns = place_ns + 1000 * row["ts"]
        values = {"correlation_id": row["args"]["correlation"], "linked_correlation_id": operator}
        values.update(external_id=operator, activity_type=row["cat"])
        values.update(device_index=0, device_resource_id=slow[2])
        if row["cat"] != "cuda_runtime":
            values.update(device_type=DeviceType.CUDA, device_resource_id=row["args"]["stream"])
        made.append(KinetoEvent(row["name"], start_ns, start_ns + 1000 * row["dur"], slow[5], **values))
    return made


def test_words_for_the_gpu_are_checked():
    with pytest.raises(ValueError, match='gpu is "auto", "native", "torch" or "off", not \'on\''):
        profile(gpu="on")
    with pytest.raises(ValueError, match="does not go with a ring"):
        profile(gpu="torch", ring="30s")
    with pytest.raises(ValueError, match="does not go with a ring"):
        profile(activities=[ProfilerActivity.CUDA], gpu="torch", ring="30s")
    # Devices are not asked for.
    profile(activities=[ProfilerActivity.CPU], gpu="torch", ring="30s")


def test_a_session_that_fails_is_said_once(tmp_path, checkout):
    text = PROGRAM.replace('print("prepared", threading.current_thread().name)', 'raise RuntimeError("no Kineto")')
    told = record(tmp_path, checkout, text, "system")
    assert told.stderr.count("not recording the GPU") == 1 and told.stdout == ""
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert example.endswith("no Kineto")
    assert len(runs.named(runs.ops(tmp_path / "run"), "tests::slow")) == 1


def test_without_a_driver_it_is_said(tmp_path):
    run = tmp_path / "run"
    told = runs.stepscope(
        "record", "--gpu", "torch", "-o", run, "--", *runs.script("import torch; torch.ones(2).exp()")
    )
    assert "not recording the GPU" in told.stderr and "there is no GPU driver here" in told.stderr
    (example,) = runs.findings(run)["capture.device_not_recorded"]["examples"]
    assert example.endswith("--gpu=torch: there is no GPU driver here")


def test_a_ring_is_refused(tmp_path):
    told = runs.execute(runs.COMMAND, "record", "--gpu", "torch", "--ring", "30s", "--", "true", code=2)
    assert "--gpu torch does not go with --ring" in told.stderr
