"""Devices' own profiler is used where it has shown, in another process, that it tells what happens.

The libraries are our own: they are right, lie, crash or hang, as the child's environment says.
"""

import json
import os
import signal
import sys
import time

import fake_gpu
import pytest
import runs
from stand_in_device import DEVICE
from stepscope import _device_proof
from test_device_session import FIXTURE, PROGRAM
from told_device import END, STAND_INS, told

# ``found(…)`` tries anew with these variables, whatever is known.
PRELUDE = """
import json, os, sys
from stepscope import _device_libraries, _device_proof
libraries = _device_libraries.libraries("cuda")
def found(is_anew=True, **variables):
    os.environ.update(variables)
    told = _device_proof.verdict("cuda", libraries, "2.x", 0, is_anew)
    [os.environ.pop(name) for name in variables]
    return [told.state, told.why]
"""
LIES = {
    "count": "2 kernels were launched, and it reports 0",
    "graph": "4 kernels of graphs were launched, and it reports 2",
    "twice": "2 kernels were launched, and it reports 4",
    "bytes": "a copy (HostToDevice) of 1048576 bytes was launched, and it reports a copy (HostToDevice) of 1048577 bytes",
    "zero": "it reports work that took 0 ns",
    "late": "ns after all was done",
    "early": "ns before it was launched",
    "name": 'it calls the kernel stepscope_proof "another_kernel"',
    "correlation": "it reports no call, or several, that launched what cuLaunchKernel did",
}
TROUBLES = {
    "crash at load": ("refused", "it crashed (SIGSEGV) while it was told to listen"),
    "crash": ("refused", "it crashed (SIGSEGV) while it handed over what it had"),
    "crash at exit": ("refused", "it crashed (SIGSEGV) while its process ended"),
    "quit": ("refused", "it ended the process (code 0) while it handed over what it had"),
    "hang": ("late", "it did not end within 2 s while "),
}


@pytest.fixture
def variables(libraries, tmp_path):
    """The environment of a program that finds the libraries, with a cache of its own and a log of who used the driver."""
    own = {"XDG_CACHE_HOME": tmp_path / "cache", "CUDA_FAKE_LOG": tmp_path / "log", "TMPDIR": tmp_path}
    return {**fake_gpu.environment(libraries), **own}


def execute(variables, text):
    """What a few lines after the prelude print as JSON."""
    result = runs.execute(*runs.new_script(PRELUDE + text), env=runs.environment(**variables))
    return json.loads(result.stdout.splitlines()[-1])


def users(variables):
    """The processes that used the driver."""
    log = variables["CUDA_FAKE_LOG"]
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def verdicts(variables):
    return sorted((variables["XDG_CACHE_HOME"] / "stepscope").glob("device-*.json"))


def test_what_is_right_is_proven_once_and_remembered(variables):
    text = "print(json.dumps([found(False), found(False)]))"
    first, second = execute(variables, text)
    assert first == second == ["proven", "24 pieces of work on Fake GPU 0, CUPTI 13.0"]
    assert execute(variables, "print(json.dumps(found(False)))") == first
    assert len(users(variables)) == 1 and len(verdicts(variables)) == 1
    # Another CUPTI under the same name is another combination; so are another PyTorch, driver and GPU.
    (file,) = verdicts(variables)
    facts = json.loads(file.read_text())["combination"]
    assert set(facts) == {"kind", "gpus", "driver", "library", "torch", "stepscope"}
    assert facts["library"][0] == str(variables["STEPSCOPE_CUPTI"]) and facts["torch"] == "2.x"


@pytest.mark.parametrize("cuda", ["11.8", "13.5"])
def test_what_is_right_is_proven_with_every_interface(variables, cuda):
    variables["CUDA_FAKE_CUPTI_VERSION"] = fake_gpu.CUDAS[cuda]
    assert execute(variables, "print(json.dumps(found()))")[0] == "proven"


def test_what_lies_crashes_or_hangs_is_not_used(variables):
    text = f"""
told = {{lie: found(CUDA_FAKE_LIE=lie) for lie in {list(LIES)}}}
_device_proof.LIMIT_S = 2
slow = {{trouble: found(CUDA_FAKE_TROUBLE=trouble) for trouble in ["hang"]}}
_device_proof.LIMIT_S = 60
told.update(slow, **{{trouble: found(CUDA_FAKE_TROUBLE=trouble) for trouble in {[*TROUBLES][:-1]}}})
print(json.dumps(told))
"""
    found = execute(variables, text)
    for lie, why in LIES.items():
        assert found[lie][0] == "refused" and why in found[lie][1], (lie, found[lie])
    for trouble, (state, why) in TROUBLES.items():
        assert found[trouble][0] == state and found[trouble][1].startswith(why), (trouble, found[trouble])


def test_what_cannot_be_tried_is_not_held_against_the_library(variables):
    text = """
told = [found(CUDA_FAKE_NO_MEMORY="1"), found(CUDA_FAKE_FAILS="100"), found(CUDA_FAKE_GPUS="0")]
sys.executable = ""
told.append(found())
print(json.dumps(told))
"""
    found = execute(variables, text)
    assert [state for state, _ in found] == ["untried"] * 4
    assert found[0][1] == "the GPU has no memory left to try it out"
    assert "no CUDA-capable device is detected" in found[1][1]
    assert _device_proof.Verdict("untried", at=time.time() - 10).is_valid()
    assert not _device_proof.Verdict("untried", at=time.time() - 3600).is_valid()
    assert not _device_proof.Verdict("late", at=time.time() - 48 * 3600).is_valid()
    assert _device_proof.Verdict("refused", at=1).is_valid()


def test_other_vendors_devices_are_not_proven():
    found = _device_proof.verdict("rocm", [], "2.x")
    assert found.state == "untried" and "not verified on hardware" in found.why


def test_of_many_processes_one_tries(variables):
    environment = runs.environment(**variables)
    command = runs.new_script(PRELUDE + "print(json.dumps(found(False)))")
    with runs.started(*command, env=environment) as one, runs.started(*command, env=environment) as other:
        told = [json.loads(process.communicate()[0]) for process in (one, other)]
    assert told[0] == told[1] and told[0][0] == "proven"
    assert len(users(variables)) == 1


def test_a_killed_trial_is_tried_again_and_its_child_does_not_outlive_it(variables):
    environment = runs.environment(**variables, CUDA_FAKE_TROUBLE="hang")
    with runs.started(*runs.new_script(PRELUDE + "print(json.dumps(found()))"), env=environment) as process:
        child = wait_for_user(variables, 1)
        os.kill(child, signal.SIGKILL)
        state, why = json.loads(process.communicate()[0])
    assert state == "untried" and why.startswith("the process that tried it was ended by SIGKILL while ")
    with runs.started(*runs.new_script(PRELUDE + "print(json.dumps(found()))"), env=environment) as process:
        child = wait_for_user(variables, 2)
        process.kill()
        wait_until(lambda: not is_alive(child))
    # An interrupt does not wait for the limit. Programs started in the background may ignore it.
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    with runs.started(*runs.new_script(heeds + PRELUDE + "print(json.dumps(found()))"), env=environment) as process:
        child = wait_for_user(variables, 3)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate()[1]
        wait_until(lambda: not is_alive(child))
    # Its turn is over.
    assert execute(variables, "print(json.dumps(found()))")[0] == "proven"


def wait_for_user(variables, number):
    wait_until(lambda: len(users(variables)) >= number)
    return users(variables)[number - 1]


def wait_until(is_so):
    """What is waited for comes; the test's own limit ends it else."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def test_nothing_that_is_open_goes_to_the_child_and_it_may_print(variables):
    # A pipe whose other side the child had would not end.
    text = """
import fcntl, time
reading, writing = os.pipe()
os.set_inheritable(writing, True)
_device_proof.LIMIT_S = 5
pid = os.fork()
if pid == 0:
    os.close(reading)
    os.write(writing, b"x" if found(CUDA_FAKE_TROUBLE="hang")[0] == "late" else b"y")
    os._exit(0)
log = os.environ["CUDA_FAKE_LOG"]
while not os.path.exists(log) or not open(log).read().endswith("\\n"):
    time.sleep(0.01)
child = open(log).read().strip()
names = {os.readlink(f"/proc/{child}/fd/{name}") for name in os.listdir(f"/proc/{child}/fd")}
own = os.readlink(f"/proc/self/fd/{writing}")
os.kill(pid, 9)
os.waitpid(pid, 0)
print(json.dumps([own in names, "/dev/null" in names]))
"""
    assert execute(variables, text) == [False, True]


def test_a_damaged_verdict_is_found_out_anew(variables):
    assert execute(variables, "print(json.dumps(found(False)))")[0] == "proven"
    (file,) = verdicts(variables)
    whole = json.loads(file.read_text())
    damaged = [b"", b"{", b"null", b"[]", b"\xff\xfe", json.dumps({**whole, "state": "good"}).encode()]
    damaged += [json.dumps({**whole, "combination": {}}).encode(), json.dumps({**whole, "at": "now"}).encode()]
    text = f"""
told = []
for text in {damaged}:
    open({str(file)!r}, "wb").write(text)
    told += found(False)[:1]
print(json.dumps(told))
"""
    # A time that is none says nothing about a verdict that holds for ever.
    assert execute(variables, text) == ["proven"] * len(damaged)
    assert len(users(variables)) == len(damaged)
    assert [path.name for path in file.parent.iterdir() if path.name.endswith(".new")] == []


def test_without_a_cache_folder_another_is_taken_or_none(variables, tmp_path):
    (tmp_path / "file").touch()
    variables["XDG_CACHE_HOME"] = tmp_path / "file"
    text = "print(json.dumps([found(False), found(False)]))"
    assert [state for state, _ in execute(variables, text)] == ["proven"] * 2
    own = tmp_path / f"stepscope-{os.geteuid()}"
    assert len(users(variables)) == 1 and list(own.glob("device-*.json")) and own.stat().st_mode & 0o077 == 0
    # Any user may write there, and could forge a verdict.
    own.chmod(0o777)
    assert [state for state, _ in execute(variables, text)] == ["proven"] * 2
    assert len(users(variables)) == 3


def test_the_child_inherits_nothing_that_it_does_not_need(monkeypatch):
    monkeypatch.setattr(
        os,
        "environ",
        dict.fromkeys(
            [
                "PATH",
                "LD_LIBRARY_PATH",
                "CUDA_VISIBLE_DEVICES",
                "NVIDIA_VISIBLE_DEVICES",
                "STEPSCOPE_CUPTI",
                "LD_PRELOAD",
                "RANK",
                "WORLD_SIZE",
                "MASTER_ADDR",
                "NCCL_DEBUG",
                "OMPI_COMM_WORLD_RANK",
                "STEPSCOPE_RUN",
                "STEPSCOPE_OPTIONS",
                "PYTHONPATH",
                "PYTHONSTARTUP",
                "CUDA_INJECTION64_PATH",
                "NVTX_INJECTION64_PATH",
            ],
            "x",
        ),
    )
    kept = {"PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "STEPSCOPE_CUPTI"}
    assert set(_device_proof._environment()) == kept


def test_a_combination_is_told_by_gpus_driver_library_and_pytorch(tmp_path):
    information = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information"
    information.parent.mkdir(parents=True)
    library = tmp_path / "libcupti.so.13"

    def key(model="NVIDIA H200", driver="580.65.06", library_text="a", torch="2.13.0"):
        information.write_text(f"Model: \t\t {model}\n")
        (tmp_path / "proc/driver/nvidia/version").write_text(f"NVRM version: NVIDIA UNIX Kernel Module  {driver}  x\n")
        library.write_text(library_text)
        os.utime(library, (1, 1))
        return _device_proof.key("cuda", ["not there", str(library)], torch, str(tmp_path))

    changed = [key(model="NVIDIA A100"), key(driver="570.1.1"), key(library_text="ab"), key(torch="2.12.0")]
    assert key() == key() and key()["gpus"] == ["NVIDIA H200"] and key()["driver"] == "580.65.06"
    assert all(other != key() for other in changed)


def test_what_is_not_proven_leaves_the_device_to_torch_profiler(variables, checkout, tmp_path):
    run = tmp_path / "run"
    environment = runs.environment(**variables, CUDA_FAKE_TROUBLE="crash")
    words = runs.new_script(PROGRAM, checkout / FIXTURE, "system")
    result = runs.stepscope("record", "-o", run, "--", *words, env=environment)
    why = "the device's own profiler is not used: it crashed (SIGSEGV) while it handed over what it had"
    assert result.stderr.count(why) == 1
    assert result.stdout.split() == ["prepared", "stepscope", "gpu", "stopped"]
    found = runs.findings(run)
    (example,) = found["capture.device_remarks"]["examples"]
    assert f"{why}; torch.profiler records it instead" in example
    assert "capture.device_not_recorded" not in found
    assert runs.analyze("kernels", run)["results"]


def test_what_is_not_proven_and_cannot_be_left_to_torch_profiler_is_a_finding(tmp_path):
    text = """
verdicts.append(_device_proof.Verdict("refused", "it lied"))
torch.cuda.init()
with profile(run=run, ring="30s") as prof:
    told.append("work")
    torch.ones(3).exp()
    prof.keep()
with profile(run=run + "-2"):
    torch.ones(3).exp()
"""
    result = runs.execute(*runs.new_script(STAND_INS + text + END, tmp_path / "run"))
    assert json.loads(result.stdout) == ["work"]
    why = "the device's own profiler is not used: it lied; PyTorch's profiler, which would be used instead, does not go with"
    assert result.stderr.count(why) == 1
    (example,) = runs.findings(tmp_path / "run")["capture.device_not_recorded"]["examples"]
    assert why in example
    # Where torch.profiler cannot record it, either, both reasons are said.
    (example,) = runs.findings(f"{tmp_path / 'run'}-2")["capture.device_not_recorded"]["examples"]
    assert "it lied; --gpu=torch: this PyTorch's profiler knows no cuda devices" in example


def test_what_is_proven_is_used(variables, tmp_path):
    text = (
        DEVICE
        + """
import time, fake_gpu, os
gpu = fake_gpu.Gpu(os.path.dirname(os.environ["STEPSCOPE_CUPTI"]))
torch.cuda.init()
gpu.use(0)
now = time.monotonic_ns()
assert gpu.put(fake_gpu.KERNEL, start=now, end=now + 50, stream=7, context=1, correlation=1, name="k") == 1
"""
    )
    run = tmp_path / "run"
    result = runs.stepscope("record", "-o", run, "--", *runs.new_script(text), env=runs.environment(**variables))
    assert "GPU of process" not in result.stderr
    (kernel,) = runs.analyze("kernels", run)["results"]
    assert kernel["name"] == "k" and "capture.device_remarks" not in runs.findings(run)
    (file,) = verdicts(variables)
    assert json.loads(file.read_text())["state"] == "proven"


def test_native_needs_no_proof(tmp_path):
    text = """
verdicts.append(_device_proof.Verdict("refused", "it crashed"))
torch.cuda.init()
"""
    assert told(tmp_path, text, command=["--gpu", "native"]) == ["start"]
    api = text + "with profile(run=run, gpu='native'): told.append('work')"
    result = runs.execute(*runs.new_script(STAND_INS + api + END, tmp_path / "other"))
    assert json.loads(result.stdout) == ["start", "work", "wait", "stop"] and result.stderr == ""


def test_the_command_finds_it_out_anew(variables):
    variables["CUDA_FAKE_LIE"] = "count"
    command = [sys.executable, "-m", "stepscope._device_proof"]
    told = runs.execute(*command, env=runs.environment(**variables), code=1)
    assert json.loads(told.stdout)["state"] == "refused"
    del variables["CUDA_FAKE_LIE"]
    assert json.loads(runs.execute(*command, env=runs.environment(**variables)).stdout)["state"] == "proven"
