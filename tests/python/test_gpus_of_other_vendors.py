"""Intel's and AMD's GPUs: what the vendor's profiler tells comes out of the analyses, joined with PyTorch's operators.

The vendors' libraries are our own, and make their records up.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import runs
import stepscope as package

SOURCES = Path(__file__).resolve().parents[1]

XPU = ("xpu", "STEPSCOPE_PTI", "fake_pti/fake_pti.c", "libpti_view.so.1")
ROCM = ("rocm", "STEPSCOPE_ROCTRACER", "fake_roctracer/fake_roctracer.c", "libroctracer64.so.4")

PROGRAM = """
import ctypes, os, sys, torch
from stepscope import _recorder
from stepscope.profiler import profile, record_function

run, kind, variable = sys.argv[1:]
library = ctypes.CDLL(os.environ[variable])
kernel = library.fake_pti_kernel if kind == "xpu" else library.fake_roctracer_kernel
kernel.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]
copy = library.fake_pti_copy if kind == "xpu" else library.fake_roctracer_copy
copy.argtypes = [ctypes.c_uint32] * (2 if kind == "xpu" else 1) + [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]

class Launch(torch.autograd.Function):
    # An operator of PyTorch's that launches a kernel.
    @staticmethod
    def forward(ctx, x):
        kernel(b"_Z6vecAddPKfS0_Pfi", 0, 1, 5000)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        kernel(b"gemm_kernel", 0, 1, 7000)
        return gradient

with profile(run=run):
    assert "not verified on hardware" in " ".join(_recorder.device_start({"kind": kind})["remarks"])
    for step in range(10):
        with record_function("training step"):
            copy(*((0, 2) if kind == "xpu" else (1,)), 4096, 0, 0, 3000)
            Launch.apply(torch.ones(2, requires_grad=True)).sum().backward()
    kernel(b"alone", 0, 0, 1000)
    _recorder.device_stop()
"""


@pytest.fixture(params=[XPU, ROCM], ids=["xpu", "rocm"])
def recorded(request, tmp_path):
    kind, variable, source, name = request.param
    library = tmp_path / name
    # Under this name AMD's is HIP, too.
    flags = ["-Wl,-soname,libamdhip64.so.6"] if kind == "rocm" else []
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, SOURCES / source, *flags], check=True)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    variables = runs.environment(**{variable: library})
    done = runs.run(sys.executable, program, tmp_path / "run", kind, variable, env=variables)
    assert done.returncode == 0, done.stderr
    return kind, package.open(tmp_path / "run")


def test_kernels_have_their_names_and_times(recorded):
    _, run = recorded
    kernels = {row["name"]: row for row in run.kernels()["results"]}
    counts = {name: (row["count"], row["total_ns"]) for name, row in kernels.items()}
    expected = {"vecAdd(float const*, float const*, float*, int)": (10, 50_000), "gemm_kernel": (10, 70_000)}
    expected["alone"] = (1, 1000)
    assert {name: count for name, (count, _) in counts.items()} == {
        name: count for name, (count, _) in expected.items()
    }
    for name, (count, total_ns) in expected.items():
        assert abs(counts[name][1] - total_ns) <= count, name
    # How a kernel was launched, neither vendor's profiler tells: not known, and not 0.
    assert {(row["blocks_per_sm"], row["occupancy_ratio"]) for row in kernels.values()} == {(None, None)}


def test_operators_and_labels_have_the_time_of_what_they_enqueued(recorded):
    _, run = recorded
    operators = {row["name"]: row for row in run.operators()["results"]}
    assert abs(operators["Launch"]["device_total_ns"] - 50_000) <= 10
    assert abs(operators["LaunchBackward"]["device_total_ns"] - 70_000) <= 10


def test_copies_and_devices_are_known(recorded):
    kind, run = recorded
    copies = run.copies()["results"]
    assert [(row["direction"], row["count"], row["bytes"]) for row in copies] == [("host_to_device", 10, 40960)]
    codes = {finding["code"]: finding["count"] for finding in run.findings()["results"]}
    assert not [code for code in codes if "device" in code or "unlinked" in code], codes
    bandwidth = {"xpu": "pageable", "rocm": None}[kind]
    assert copies[0]["memory"] == bandwidth


def test_records_of_rocm_are_laid_out_as_in_the_headers(tmp_path):
    """Assertions of the fake's own compare its structures with AMD's headers, which Triton brings."""
    triton = find_spec("triton")
    assert triton is not None, "PyTorch's wheel for Linux brings Triton, and that AMD's headers"
    headers = Path(triton.submodule_search_locations[0]) / "backends/amd/include"
    assert (headers / "roctracer/roctracer.h").exists(), "Triton has its headers elsewhere now"
    flags = ["-w", "-shared", "-fPIC", "-DROCM_HEADERS", "-D__HIP_PLATFORM_AMD__", f"-I{headers}"]
    runs.execute("cc", *flags, SOURCES / "fake_roctracer/fake_roctracer.c", "-o", tmp_path / "checked.so")
