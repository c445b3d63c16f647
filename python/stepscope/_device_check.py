"""Tells what can be recorded of devices here, for ``stepscope doctor``: ``python -m stepscope._device_check``.

In a process of its own, since it tries: a device that is used once stays in use by its process. What there is no driver
for is not tried, and nothing of it is loaded.
"""

import ctypes
import dataclasses
import importlib.util
import os
import re
import types

from stepscope import _device_libraries, _device_proof

_KINDS = ("cuda", "rocm", "xpu")
# The bits of /proc/self/status that let a process profile whatever the driver says.
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38


def check(find, root="/"):
    """What is known of each kind of device that this machine has a driver for; ``find`` looks for its profiler."""
    torch = torch_version()
    kinds = [kind for kind in _KINDS if _device_libraries.has_driver(kind)]
    return {
        "torch_cuda": torch.cuda,
        "torch_hip": torch.hip,
        "kinds": [_kind(kind, find, torch, root) for kind in kinds],
    }


def _kind(kind, find, torch, root):
    libraries = _device_libraries.libraries(kind, types.SimpleNamespace(version=torch))
    proof = _device_proof.verdict(kind, libraries, torch.__version__) if kind == "cuda" else None
    # What has shown that it crashes or hangs is not loaded here, either.
    found = {"refused": proof.why} if proof and not proof.is_proven else find(kind, libraries, True)
    known = {"kind": kind, **found}
    if proof:
        known.update(
            proof=dataclasses.asdict(proof),
            driver=_device_proof.driver_version(root),
            models=_device_proof.models(root),
            is_for_admins_only=_is_for_admins_only(root),
            is_privileged=_is_privileged(root),
            nvml=_nvml(),
            injected=os.environ.get("CUDA_INJECTION64_PATH", ""),
        )
    return known


def torch_version():
    """What PyTorch was built with, without importing it."""
    version = types.SimpleNamespace(__version__=None, cuda=None, hip=None)
    try:
        spec = importlib.util.find_spec("torch")
        with open(os.path.join(spec.submodule_search_locations[0], "version.py"), encoding="utf-8") as file:
            text = file.read()
    except Exception:
        return version
    for name in ("__version__", "cuda", "hip"):
        found = re.search(rf"^{name}\b[^=\n]*= *['\"]([^'\"]+)['\"]", text, re.MULTILINE)
        setattr(version, name, found and found[1])
    return version


def _is_for_admins_only(root):
    """What the driver says of who may profile; None where it says nothing."""
    found = re.search(r"^RmProfilingAdminOnly:\s*(\d)", _read(root, "proc/driver/nvidia/params"), re.MULTILINE)
    return found[1] != "0" if found else None


def _is_privileged(root):
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", _read(root, "proc/self/status"), re.MULTILINE)
    capabilities = int(found[1], 16) if found else 0
    return bool(capabilities & (1 << _CAP_SYS_ADMIN | 1 << _CAP_PERFMON))


def _nvml():
    """Whether the library that samples utilization, memory, clocks, power, temperature and PCIe link is there."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        return True
    except OSError:
        return False


def _read(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def main():
    """Print what was found, as one line of JSON."""
    import json

    from stepscope import _recorder

    def find(kind, libraries, may_initialize):
        found = _recorder.device_find(kind, libraries, may_initialize)
        if "devices" in found:
            found["devices"] = json.loads(found["devices"])
        return {key: os.fspath(value) if key == "library" else value for key, value in found.items()}

    print(json.dumps(check(find)))


if __name__ == "__main__":
    main()
