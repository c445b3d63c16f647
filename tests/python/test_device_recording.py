"""When devices' profilers are started and stopped. PyTorch's own initialisation runs; device and profiler are stand-ins."""

import json
import os

import pytest
import runs
from told_device import END, STAND_INS, told


def test_a_device_that_is_in_use_already(tmp_path):
    text = """
torch.cuda.init()
with profile(run=run):
    told.append("work")
told.append("after")
assert given[0]["kind"] == "cuda" and given[0]["ranges"] is False, given
assert given[0]["libraries"][-1] == "libcupti.so", given
"""
    assert told(tmp_path, text) == ["start", "work", "wait", "stop", "after"]


def test_a_device_that_is_first_used_while_recording(tmp_path):
    text = """
with profile(run=run):
    told.append("before")
    torch.cuda.init()
    told.append("work")
"""
    assert told(tmp_path, text) == ["before", "start", "work", "wait", "stop"]


def test_a_device_that_is_first_used_on_another_thread_between_recordings(tmp_path):
    text = """
with profile(run=run):
    pass
thread = threading.Thread(target=torch.cuda.init)
thread.start()
thread.join()
told.append("work")
with profile(run=run + "-2"):
    pass
"""
    assert told(tmp_path, text) == ["work", "start", "wait", "stop"]


def test_a_process_without_a_device_starts_nothing(tmp_path):
    assert told(tmp_path, "with profile(run=run): torch.ones(3).exp()") == []
    assert "capture.device_not_recorded" not in runs.findings(tmp_path / "run")


@pytest.mark.parametrize(
    "activities, is_started", [("[CPU]", False), ("[CPU, CUDA]", True), ("[CUDA]", True), ("None", True)]
)
def test_activities_say_whether(tmp_path, activities, is_started):
    text = f"""
warnings.simplefilter("ignore")
torch.cuda.init()
with profile(run=run, activities={activities}):
    pass
"""
    assert told(tmp_path, text) == (["start", "wait", "stop"] if is_started else [])


def test_a_profiler_inside_another_waits_for_its_own_end(tmp_path):
    """The outer one's end is waited for all the same; an inner one that alone wants devices has them alone."""
    text = """
torch.cuda.init()
with profile(run=run):
    told.append("outer")
    with profile():
        told.append("inner")
    told.append("outer again")
with profile(activities=[CPU], run=run):
    with profile(activities=[CPU, CUDA]):
        told.append("inner")
    told.append("outer")
"""
    both = ["start", "outer", "inner", "wait", "outer again", "wait", "stop"]
    assert told(tmp_path, text) == [*both, "start", "inner", "wait", "stop", "outer"]


def test_the_profiler_runs_in_warmup_and_active_steps(tmp_path):
    text = """
torch.cuda.init()
with profile(run=run, schedule=schedule(wait=1, warmup=1, active=2, repeat=2)) as prof:
    for step in range(9):
        told.append(step)
        prof.step()
"""
    cycle = ["start", 1, 2, 3, "wait", "stop"]
    again = ["start", 5, 6, 7, "wait", "stop"]
    assert told(tmp_path, text) == [0, *cycle, 4, *again, 8]


def test_a_schedule_of_the_command(tmp_path):
    text = """
torch.cuda.init()
optimizer = torch.optim.SGD([torch.zeros(4, requires_grad=True)], lr=0.001)
for step in range(8):
    told.append(step)
    optimizer.step()
"""
    command = ["--schedule", "wait=2,warmup=1,active=1,repeat=2"]
    cycle = ["start", 2, 3, "wait", "stop"]
    assert told(tmp_path, text, command=command) == [0, 1, *cycle, 4, 5, "start", 6, 7, "wait", "stop"]


def test_a_step_without_warmup(tmp_path):
    text = """
torch.cuda.init()
optimizer = torch.optim.SGD([torch.zeros(4, requires_grad=True)], lr=0.001)
for step in range(5):
    told.append(step)
    optimizer.step()
"""
    assert told(tmp_path, text, command=["--steps", "2..3"]) == [0, 1, "start", 2, 3, "wait", "stop", 4]


@pytest.mark.parametrize("options, is_started", [([], True), (["--gpu", "off"], False)])
def test_the_command_switches_it(tmp_path, options, is_started):
    # The end of the process comes after what it prints.
    expected = ["start"] if is_started else []
    assert told(tmp_path, "torch.cuda.init()", command=["--memory", *options]) == expected


def test_ranges_of_nvtx_and_samples(tmp_path):
    text = "torch.cuda.init(); assert given[0]['ranges'] and given[0]['sample_period_ms'] == 0, given"
    assert told(tmp_path, text, command=["--nvtx", "--no-counters"]) == ["start"]


def test_a_refusal_is_said_once_and_is_a_finding(tmp_path):
    text = """
refusals.append("CUPTI has another\\nsubscriber")
torch.cuda.init()
with profile(run=run, schedule=schedule(wait=0, warmup=1, active=1, repeat=3)) as prof:
    for _ in range(6):
        torch.ones(3).exp()
        prof.step()
"""
    result = runs.execute(*runs.script(STAND_INS + text + END, tmp_path / "run"))
    assert json.loads(result.stdout) == []
    assert result.stderr.count("not recording the GPU") == 1
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert example.endswith("CUPTI has another subscriber")
    assert len(runs.named(runs.ops(tmp_path / "run"), "aten::exp")) == 3


def test_errors_of_the_device_stay_the_programs_own(tmp_path):
    text = """
def fail(device=None):
    raise RuntimeError("CUDA error: device-side assert triggered")
torch.cuda.synchronize = fail
torch.cuda.init()
with profile(run=run):
    told.append("work")
"""
    assert told(tmp_path, text) == ["start", "work", "stop"]


def test_nothing_waits_while_a_graph_is_captured(tmp_path):
    text = """
torch.cuda.init()
torch.cuda.is_current_stream_capturing = lambda: True
with profile(run=run):
    told.append("work")
"""
    assert told(tmp_path, text) == ["start", "work", "stop"]


def test_work_that_hangs_does_not_keep_the_end_of_a_process(tmp_path):
    text = """
import os, time, types
from stepscope import _device_wait

class Patient(threading.Event):
    def wait(self, timeout):
        # A busy machine may be late to begin what hangs.
        begun.wait()
        return super().wait(min(timeout, 1))

begun = threading.Event()
_device_wait.threading = types.SimpleNamespace(Event=Patient, main_thread=threading.main_thread)

def start(thread):
    # As from Python 3.12 on.
    if not threading.main_thread().is_alive():
        raise RuntimeError("can't create new thread at interpreter shutdown")
    before(thread)

before, threading.Thread.start = threading.Thread.start, start
torch.cuda.current_device = lambda: 3

def hang(device=None):
    os.write(1, json.dumps([*told, "waits", device]).encode() + b"\\n")
    begun.set()
    time.sleep(3600)

torch.cuda.synchronize = hang
torch.cuda.init()
"""
    # On another thread than the one whose device is meant.
    assert told(tmp_path, text, command=["--memory"]) == ["start", "waits", 3]


def test_what_the_profiler_does_not_tell_is_said_once_and_is_a_finding(tmp_path):
    text = """
remarks += ["no waits: CUPTI has none", "no events: nor these"]
torch.cuda.init()
with profile(run=run, schedule=schedule(wait=0, warmup=1, active=1, repeat=2)) as prof:
    for _ in range(4):
        torch.ones(3).exp()
        prof.step()
"""
    result = runs.execute(*runs.script(STAND_INS + text + END, tmp_path / "run"))
    assert result.stderr.count("no waits: CUPTI has none") == result.stderr.count("no events: nor these") == 1
    example, other = runs.findings(tmp_path / "run")["capture.device_remarks"]["examples"]
    assert example.endswith("no waits: CUPTI has none") and other.endswith("no events: nor these")


@pytest.mark.parametrize(
    "options, given, expected",
    [
        (["--nvtx", "--gpu", "native"], None, "libcupti.so"),
        (["--nvtx"], "theirs.so", "theirs.so"),
        ([], None, None),
        (["--nvtx", "--gpu", "off"], None, None),
        # What is not proven is not loaded by a range, either.
        (["--nvtx"], None, None),
    ],
)
def test_ranges_of_nvtx_are_told_to_cupti(tmp_path, options, given, expected):
    library = tmp_path / "libcupti.so"
    library.touch()
    environment = runs.environment(STEPSCOPE_CUPTI=library, NVTX_INJECTION64_PATH=given, XDG_CACHE_HOME=tmp_path)
    program = runs.script("import os, torch; print(os.environ.get('NVTX_INJECTION64_PATH'))")
    result = runs.stepscope("record", *options, "-o", tmp_path / "run", "--", *program, env=environment)
    assert os.path.basename(result.stdout.strip()) == str(expected)


def test_a_forked_child_begins_anew(tmp_path):
    text = """
import os
torch.cuda.init()
with profile(run=run):
    child = os.fork()
    if child == 0:
        from stepscope import _device
        assert _device._state.recorded_by is None
        torch.ones(3).exp()
        # A child may use a device that its parent has not used; here it is made to look so.
        torch.cuda._initialized = False
        _device._state.watched_kinds.clear()
        _device._watch_first_use(torch)
        torch.cuda.init()
        print(json.dumps(["child", *told]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    words = runs.script(STAND_INS + text + END, tmp_path / "run")
    child, parent = runs.execute(*words).stdout.splitlines()
    assert json.loads(child) == ["child", "start", "start"]
    assert json.loads(parent) == ["start", "wait", "stop"]


def test_what_is_asked_for_and_has_no_driver_is_said(tmp_path):
    text = """
import torch
from stepscope import _device_libraries
from stepscope.profiler import ProfilerActivity, profile
_device_libraries.has_driver = lambda kind: False
with profile(run=sys.argv[1], activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
    torch.ones(3).exp()
"""
    result = runs.execute(*runs.script("import sys\n" + text, tmp_path / "run"))
    assert "there is no driver for CUDA here" in result.stderr
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert example.endswith("there is no driver for CUDA here")
