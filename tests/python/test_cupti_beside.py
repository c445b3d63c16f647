"""PyTorch's own profiler in the process: it subscribes to CUPTI with its first session, and stays subscribed."""

import json

import fake_gpu
import pytest
import runs
from gpu_programs import PRELUDE, execute, kernels
from stand_in_device import DEVICE

BESIDE = """
gpu.cupti.fake_other_begins()
assert plant(5, first=1000) == [1] * 5
assert gpu.cupti.fake_other_ends() == 5
assert plant(1) == [0]
"""


@pytest.mark.parametrize("cuda", ["13.0", "13.5"])
def test_both_get_their_records_one_after_the_other(libraries, tmp_path, cuda):
    text = (
        BESIDE
        + """
why = refused()
_recorder.open(run, {})
found = fake_gpu.start(others_are_idle=True)
assert plant(3) == [1] * 3
fake_gpu.stop()
assert plant(1) == [0]
_recorder.close()
gpu.cupti.fake_other_begins()
assert plant(7, first=2000) == [1] * 7
print(json.dumps([why, found, gpu.cupti.fake_other_ends(), gpu.cupti.fake_subscribers(), gpu.cupti.fake_mixed()]))
"""
    )
    why, found, theirs, subscribers, mixed = execute(libraries, tmp_path / "run", text, cuda)
    assert "listens to CUPTI already" in why and "begin to record before it does" in why
    assert found["interface"] == "v1, unsubscribed"
    (remark,) = found["remarks"]
    assert "is CUPTI's subscriber and idle" in remark
    assert [row["correlation"] for row in kernels(tmp_path / "run")] == [1, 2, 3]
    assert (theirs, subscribers, mixed) == (12, 1, 0)


def test_times_before_and_after_another_profiler_are_of_one_clock(libraries, tmp_path):
    text = """
_recorder.open(run, {})
planted = []
def kernel():
    planted.append(time.monotonic_ns())
    assert gpu.put(fake_gpu.KERNEL, start=planted[-1], end=planted[-1] + 50, correlation=len(planted), name="k") == 1
for is_other_over in (False, True, True):
    fake_gpu.start(others_are_idle=is_other_over)
    kernel()
    _recorder.device_flush()
    kernel()
    fake_gpu.stop()
    # Who listens in between sets a clock of its own.
    gpu.cupti.fake_other_begins()
    gpu.cupti.fake_other_ends()
_recorder.close()
print(json.dumps(planted))
"""
    planted = execute(libraries, tmp_path / "run", text)
    found = {row["correlation"]: row["start_ns"] for row in kernels(tmp_path / "run")}
    offsets = [found[number] - at_ns for number, at_ns in enumerate(planted, 1)]
    # What readings of several clocks differ by.
    assert len(found) == 6 and max(offsets) - min(offsets) < 1_000_000


PROGRAM = (
    DEVICE
    + """
from stepscope.profiler import profile
%s
torch.cuda.init()
with profile(run=run):
    torch.ones(2)
    results = plant(4)
print(json.dumps(results))
"""
)
STOCK = """
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    torch.ones(2)
"""


def test_a_session_before_ours_is_known_of_and_said(libraries, tmp_path):
    text = (PRELUDE + PROGRAM) % (STOCK + BESIDE)
    environment = runs.environment(**fake_gpu.environment(libraries))
    result = runs.execute(*runs.new_script(text, libraries, tmp_path / "run"), env=environment)
    assert json.loads(result.stdout.splitlines()[-1]) == [1] * 4, result.stderr
    assert len(kernels(tmp_path / "run")) == 4
    finding = runs.findings(tmp_path / "run")["capture.device_remarks"]
    assert finding["count"] == 1 and "is CUPTI's subscriber and idle" in finding["examples"][0]


@pytest.mark.parametrize("tool", [None, "libToolsInjection64.so"])
def test_another_subscriber_is_left_alone(libraries, tmp_path, tool):
    """Without a session of PyTorch's it is somebody else; with a tool in the process nobody knows who it is."""
    # A library of the tool's name.
    loads = (
        f"import ctypes, shutil; ctypes.CDLL(shutil.copy(sys.argv[1] + '/libnvidia-ml.so.1', sys.argv[2] + '/{tool}'))"
    )
    text = (PRELUDE + PROGRAM) % ((STOCK + loads if tool else "") + BESIDE)
    environment = runs.environment(**fake_gpu.environment(libraries))
    result = runs.execute(*runs.new_script(text, libraries, tmp_path / "run"), env=environment)
    assert json.loads(result.stdout.splitlines()[-1]) == [0] * 4
    assert "another tool listens to CUPTI already" in result.stderr
    assert runs.findings(tmp_path / "run")["capture.device_not_recorded"]["count"] == 1


def test_whether_pytorchs_profiler_was_used_is_known():
    text = """
import os, torch
from stepscope import _recorder
folder = os.path.join(os.path.dirname(torch.__file__), "lib")
said = [_recorder.is_kineto_used(folder)]
with torch.profiler.profile():
    said.append(_recorder.is_kineto_used(folder))
said += [_recorder.is_kineto_used(folder), _recorder.is_kineto_used("/nowhere")]
print(said)
"""
    assert runs.execute(*runs.new_script(text)).stdout == "[False, True, True, None]\n"


def test_while_it_runs_ours_does_not_begin(libraries, tmp_path):
    text = (
        (PRELUDE + PROGRAM)
        % """
stock = torch.profiler.profile()
stock.start()
gpu.cupti.fake_other_begins()
"""
    )
    environment = runs.environment(**fake_gpu.environment(libraries))
    result = runs.execute(*runs.new_script(text + "stock.stop()\n", libraries, tmp_path / "run"), env=environment)
    assert kernels(tmp_path / "run") == [] and json.loads(result.stdout.splitlines()[-1]) == [1] * 4
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert "torch.profiler had the device once" in example
