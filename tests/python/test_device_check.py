"""What ``doctor`` finds out about GPUs, from the files of a driver that is not here."""

import json
import sys

import fake_gpu
import runs
from stepscope import _device_check, _device_libraries, _device_proof


def driver(root, admins_only):
    """A machine with NVIDIA's driver and two devices."""
    files = {
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n",
        "proc/driver/nvidia/params": f"ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: {admins_only}\n",
        "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H200\nIRQ:   \t\t 11\n",
        "proc/driver/nvidia/gpus/0000:02:00.0/information": "Model: \t\t NVIDIA H200\n",
        "proc/self/status": "Name:\tpython\nCapEff:\t0000000000000000\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_what_a_driver_says(tmp_path, monkeypatch):
    driver(tmp_path, admins_only=1)
    monkeypatch.setattr(_device_libraries, "has_driver", lambda kind: kind == "cuda")
    monkeypatch.setattr(_device_proof, "verdict", lambda *_: _device_proof.Verdict("proven", "some work"))
    asked = []

    def find(kind, libraries, may_initialize):
        asked.append((kind, libraries[-1], may_initialize))
        return {"refused": "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"}

    found = _device_check.check(find, str(tmp_path))
    assert asked == [("cuda", "libcupti.so", True)]
    (cuda,) = found["kinds"]
    assert cuda["proof"] == {"state": "proven", "why": "some work", "at": 0}
    assert cuda["driver"] == "580.65.06" and cuda["models"] == ["NVIDIA H200"] * 2
    assert cuda["is_for_admins_only"] is True and cuda["is_privileged"] is False
    driver(tmp_path, admins_only=0)
    (tmp_path / "proc/self/status").write_text("CapEff:\t000001ffffffffff\n")
    (cuda,) = _device_check.check(find, str(tmp_path))["kinds"]
    assert cuda["is_for_admins_only"] is False and cuda["is_privileged"] is True


def test_what_is_not_proven_is_not_loaded(monkeypatch):
    monkeypatch.setattr(_device_libraries, "has_driver", lambda kind: kind == "cuda")
    monkeypatch.setattr(_device_proof, "verdict", lambda *_: _device_proof.Verdict("refused", "it crashed"))
    (cuda,) = _device_check.check(None)["kinds"]
    assert cuda["refused"] == "it crashed" and cuda["proof"]["state"] == "refused"


def test_pytorch_is_asked_without_importing_it():
    text = "import sys; from stepscope import _device_check as c; v = c.torch_version(); print(v.cuda, v.__version__, 'torch' in sys.modules)"
    import torch

    assert runs.execute(*runs.new_script(text)).stdout == f"{torch.version.cuda} {torch.__version__} False\n"


def test_nothing_is_tried_where_there_is_no_driver(monkeypatch):
    monkeypatch.setattr(_device_libraries, "has_driver", lambda kind: False)
    assert _device_check.check(None)["kinds"] == []


def test_libraries_come_in_order(tmp_path, monkeypatch):
    for name in ("nvidia/cuda_cupti/lib/libcupti.so.12", "nvidia/cu13/lib/libcupti.so.13"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(_device_libraries, "loaded", lambda: ["/x/libcupti.so.13.0", "/x/libc.so.6"])
    monkeypatch.delenv("STEPSCOPE_CUPTI", raising=False)

    class Torch:
        class version:
            cuda = "13.0"

    of_packages = [
        str(tmp_path / name) for name in ("nvidia/cu13/lib/libcupti.so.13", "nvidia/cuda_cupti/lib/libcupti.so.12")
    ]
    found = _device_libraries.libraries("cuda", Torch)
    assert [path for path in found if not path.startswith("/usr")] == [
        "/x/libcupti.so.13.0",
        *of_packages,
        "libcupti.so.13",
        "libcupti.so.12",
        "libcupti.so",
    ]
    monkeypatch.setenv("STEPSCOPE_CUPTI", "/the/one.so")
    assert _device_libraries.libraries("cuda", Torch) == ["/the/one.so"]


def test_the_command_says_why_cupti_is_not_used(tmp_path):
    environment = runs.environment(STEPSCOPE_CUPTI=tmp_path / "libcupti.so", XDG_CACHE_HOME=tmp_path)
    told = runs.stepscope("doctor", "--python", sys.executable, "--json", env=environment)
    checks = {check["name"]: check for check in json.loads(told.stdout)["checks"]}
    assert checks["CUPTI"]["health"] == "limited" and "kernels cannot be recorded" in checks["CUPTI"]["says"]
    assert json.loads(told.stdout)["can_record"] is True, "the CPU is recorded all the same"


def test_doctor_tries_what_can_be_tried(libraries, tmp_path):
    """A CUPTI of our own, which knows what each release has without being told."""
    for cuda, interface in (("11.8", "API 18 (v1)"), ("13.0", "13.0 (v1)"), ("13.5", "13.5 (v2, beside others)")):
        environment = runs.environment(**{**fake_gpu.environment(libraries, cuda), "XDG_CACHE_HOME": tmp_path / cuda})
        told = runs.stepscope("doctor", "--python", sys.executable, env=environment).stdout
        told = " ".join(told.split())
        assert f"✓ CUPTI {interface}" in told and "✓ GPU Fake GPU 0" in told
        assert "proven: what ran was reported as it ran (24 pieces of work on Fake GPU 0" in told
