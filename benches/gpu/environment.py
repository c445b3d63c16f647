"""On what was measured: GPU, driver, CUDA, CUPTI, PyTorch."""

import ctypes
import platform
import re
import sys
from pathlib import Path


def of_process(torch):
    """Facts of this process, once it has used the device. What is not known is left out."""
    facts = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "linux": platform.release(),
        "cpu": _cpu(),
        "stepscope": _stepscope(),
        "driver": _driver(),
        "cupti": _cupti(),
    }
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        facts["gpu"] = properties.name
        facts["gpu_memory_bytes"] = properties.total_memory
        facts["compute_capability"] = f"{properties.major}.{properties.minor}"
        facts["proof"] = _proof(torch)
        facts["multiprocessors"] = properties.multi_processor_count
        if torch.distributed.is_available() and torch.distributed.is_nccl_available():
            facts["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return {name: fact for name, fact in facts.items() if fact is not None}


def _stepscope():
    from importlib import metadata

    try:
        return metadata.version("stepscope")
    except metadata.PackageNotFoundError:
        return None


def _proof(torch):
    """Whether ``--gpu auto`` would use the device's own profiler here, and why."""
    from stepscope import _device_libraries, _device_proof

    found = _device_proof.verdict("cuda", _device_libraries.libraries("cuda", torch), torch.__version__)
    return f"{found.state}: {found.why}"


def _driver():
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"\b(\d+\.\d+(\.\d+)?)\b", text)
    return found and found.group(1)


def _cupti():
    """The version of the CUPTI that is loaded, and of each where several are; nothing is loaded for it."""
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcupti.so" in line}
    versions = []
    for path in sorted(loaded):
        version = ctypes.c_uint32()
        if ctypes.CDLL(path).cuptiGetVersion(ctypes.byref(version)) == 0:
            versions.append(str(version.value))
    return " and ".join(versions) or None


def _cpu():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine() if sys.platform == "linux" else None
