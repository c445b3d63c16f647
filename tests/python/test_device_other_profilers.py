"""Who has the device when another profiler runs in the same process. PyTorch's own initialisation runs; device and profiler
are stand-ins."""

import pytest
import runs
from told_device import told


def test_another_profiler_has_the_device_meanwhile(tmp_path):
    text = """
torch.cuda.init()
with profile(run=run):
    torch.ones(3).exp()
    for _ in range(2):
        # What fails has not begun.
        try:
            torch._C._autograd._prepare_profiler(None, {CPU})
        except TypeError:
            told.append("failed")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        told.append("theirs")
    told.append("ours")
"""
    expected = ["start", "stop", "start", "failed", "stop", "start", "failed", "stop", "theirs", "start", "ours"]
    assert told(tmp_path, text) == [*expected, "wait", "stop"]
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert "torch.profiler had the device 3 times" in example


THEIRS = """
def theirs(**options):
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)

def on_another_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
"""


def test_another_profiler_that_began_between_windows_keeps_the_device(tmp_path):
    text = (
        THEIRS
        + """
torch.cuda.init()
with profile(run=run):
    told.append("window")
    torch.ones(3).exp()
prof = theirs()
prof.start()
with profile(run=run + "-2"):
    told.append("window")
    torch.ones(3).exp()
with profile(run=run + "-3"):
    told.append("window")
    torch.ones(3).exp()
    prof.stop()
    told.append("ours")
"""
    )
    first = ["start", "window", "wait", "stop"]
    assert told(tmp_path, text) == [*first, "window", "window", "start", "ours", "wait", "stop"]
    assert "capture.device_not_recorded" not in runs.findings(tmp_path / "run")
    for number in (2, 3):
        (example,) = runs.findings(tmp_path / f"run-{number}")["capture.device_not_recorded"]["examples"]
        assert "torch.profiler had the device once" in example


def test_another_profiler_keeps_the_device_until_it_ends(tmp_path):
    text = (
        THEIRS
        + """
from stepscope import _device

def one_more():
    # Not for real: PyTorch does not always survive two sessions at a time.
    begun = _device.give_way("_enable_profiler")
    told.append(["one more", begun])
    _device.come_back("_enable_profiler", False, begun, None)
    _device.come_back("_disable_profiler", False, False, None)

torch.cuda.init()
with profile(run=run):
    with theirs():
        # What fails inside of it, and what runs beside it, does not end it.
        for call in (torch._C._autograd._enable_profiler, torch._C._autograd._toggle_collection_dynamic):
            try:
                call(None, None)
            except TypeError:
                told.append("failed")
        on_another_thread(one_more)
        on_another_thread(torch._C._autograd._disable_profiler)
    told.append("ours")
"""
    )
    theirs = ["start", "stop", "failed", "failed", ["one more", True], "start", "ours"]
    assert told(tmp_path, text) == [*theirs, "wait", "stop"]


def test_another_profiler_that_began_before_us_keeps_the_device(tmp_path):
    text = (
        THEIRS
        + """
torch.cuda.init()
prof = theirs()
prof.start()
with profile(run=run):
    told.append("theirs")
    prof.stop()
    told.append("ours")
assert given[0]["others_are_idle"] is True, given
"""
    )
    assert told(tmp_path, text) == ["theirs", "start", "ours", "wait", "stop"]


def test_another_profiler_of_all_threads_may_be_ended_by_any(tmp_path):
    text = (
        THEIRS
        + """
torch.cuda.init()
with profile(run=run):
    prof = theirs(experimental_config=torch.profiler._ExperimentalConfig(profile_all_threads=True))
    prof.start()
    told.append("theirs")
    on_another_thread(torch._C._autograd._disable_profiler)
    told.append("ours")
"""
    )
    assert told(tmp_path, text) == ["start", "stop", "theirs", "start", "ours", "wait", "stop"]


def test_a_device_that_is_first_used_while_another_profiler_runs(tmp_path):
    text = (
        THEIRS
        + """
with profile(run=run):
    with theirs():
        torch.cuda.init()
        told.append("theirs")
"""
    )
    assert told(tmp_path, text) == ["theirs", "start", "wait", "stop"]


def test_another_profiler_in_a_process_without_a_device_is_no_finding(tmp_path):
    assert told(tmp_path, THEIRS + "with profile(run=run), theirs(): torch.ones(3).exp()") == []
    assert "capture.device_not_recorded" not in runs.findings(tmp_path / "run")


@pytest.mark.parametrize(
    "has_run, tool, are_idle", [(True, None, True), (True, "/opt/tool.so", False), (False, None, False)]
)
def test_torch_profiler_is_known_to_be_idle_when_it_ran_before_us(tmp_path, has_run, tool, are_idle):
    text = (
        THEIRS
        + f"""
import os
tool = {tool!r}
os.environ.pop("CUDA_INJECTION64_PATH", None)
if tool:
    os.environ["CUDA_INJECTION64_PATH"] = tool
if {has_run}:
    with theirs():
        torch.ones(3).exp()
torch.cuda.init()
with profile(run=run):
    pass
assert given[0]["others_are_idle"] is {are_idle}, given
"""
    )
    assert told(tmp_path, text) == ["start", "wait", "stop"]
