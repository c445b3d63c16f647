"""Where the library lies through which a kind of device tells what it does."""

import glob
import os
import sys

# For each kind: the library's names as the loader may know it, folders of packages, and of the system.
_LIBRARIES = {
    "cuda": (
        ("libcupti.so.13", "libcupti.so.12", "libcupti.so"),
        ("nvidia/cuda_cupti/lib", "nvidia/cu*/lib"),
        ("/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/usr/local/cuda-*/extras/CUPTI/lib64"),
    ),
    "rocm": (
        ("libroctracer64.so.4", "libroctracer64.so"),
        ("torch/lib", "_rocm_sdk_core/lib"),
        ("/opt/rocm/lib", "/opt/rocm-*/lib"),
    ),
    "xpu": (("libpti_view.so",), ("../..", "torch/lib"), ("/opt/intel/oneapi/pti/latest/lib",)),
}
# What Nsight Systems, Nsight Compute, compute-sanitizer and cuda-gdb bring into a process.
_TOOLS = (
    "libToolsInjection",
    "libInterceptorInjection",
    "libcuda-injection",
    "libnvlog",
    "libsanitizer-collection",
    "libcudadebugger",
)
# The path of the library to use, for tests and for odd installations.
VARIABLES = {"cuda": "STEPSCOPE_CUPTI", "rocm": "STEPSCOPE_ROCTRACER", "xpu": "STEPSCOPE_PTI"}
_DRIVERS = {
    "cuda": ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"),
    "rocm": ("/dev/kfd",),
    "xpu": ("/dev/dri/renderD128",),
}


def libraries(kind, torch=None):
    """Paths to try, best first: what the process has loaded, its packages', the system's, the loader's own choice."""
    named = os.environ.get(VARIABLES.get(kind, ""))
    if named:
        return [named]
    names, of_packages, of_system = _LIBRARIES[kind]
    name = names[-1]
    found = [path for path in loaded() if os.path.basename(path).startswith(name)]
    found += _of_release(_in_folders(name, _folders_of_packages(of_packages)), torch)
    found += _of_release(_in_folders(name, of_system), torch)
    return list(dict.fromkeys([*found, *names]))


def has_driver(kind):
    """Whether this machine has a driver for a kind of device, without loading anything."""
    if os.environ.get(VARIABLES.get(kind, "")):
        return True
    return any(os.path.exists(path) for path in _DRIVERS[kind])


def tool():
    """The library of a tool that listens to this process's CUDA from outside; None without one."""
    for path in loaded():
        if os.path.basename(path).startswith(_TOOLS):
            return path
    return os.environ.get("CUDA_INJECTION64_PATH") or None


def loaded():
    """The files that this process has mapped, in no order that means anything but the same each time."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            paths = (line.rstrip("\n").partition("/") for line in file if ".so" in line)
            return sorted({slash + path for _, slash, path in paths if slash})
    except OSError:
        return []


def _folders_of_packages(patterns):
    return [os.path.join(glob.escape(entry), pattern) for entry in sys.path if entry for pattern in patterns]


def _in_folders(name, folders):
    paths = (path for folder in folders for path in sorted(glob.glob(os.path.join(folder, name + "*"))))
    return [path for path in paths if os.path.isfile(path)]


def _of_release(paths, torch):
    """Those first that are of the release that PyTorch was built with: `libcupti.so.13`."""
    release = (getattr(getattr(torch, "version", None), "cuda", None) or "").partition(".")[0]
    return sorted(paths, key=lambda path: not (release and f".so.{release}" in os.path.basename(path)))
