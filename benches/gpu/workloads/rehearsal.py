"""A GPU that tests have made up: the whole command can be tried without a real one, by ``check.py --rehearse``.

A library in place of CUPTI reports what each step plants. What ``torch.profiler`` would have said of it is put together
here, from the same plan but by no code of Stepscope's, and joins what it really records of the host.
"""

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

STEPS = 3
EXPECTED = (
    "ops",
    "kernels",
    "copies",
    "memsets",
    "durations",
    "launch shapes",
    "occupancy",
    "launching ops",
    "streams",
    "copied bytes",
    "graph nodes",
    "calls",
    "waits",
    "clock",
    "devices",
)
US, MS = 1_000, 1_000_000
# What the library in place of the driver says of its first device.
DEVICE = {
    "id": 0,
    "name": "Fake GPU 0",
    "totalGlobalMem": 80_000_000_100,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
    "warpSize": 32,
    "regsPerMultiprocessor": 65536,
}
# By how many ns its clock is ahead of the host's, and by how many parts per million it is faster.
CLOCK = (123_456_789_012, 20)
# A block of 256 threads with 32 registers each: 8 fill a multiprocessor, with 8 warps each of the 64 that it has.
SHAPE = {"block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}

_kept = {"gpu": None, "rows": [], "correlation": 0, "is_done_ns": 0, "has_subscriber": False}


def folder_of_fake():
    """The folder of the checkout that has the program's side of the libraries."""
    return Path(__file__).resolve().parents[3] / "tests" / "python"


def fake_gpu():
    if str(folder_of_fake()) not in sys.path:
        sys.path.append(str(folder_of_fake()))
    import fake_gpu

    return fake_gpu


@contextmanager
def ready(torch, _):
    fake = fake_gpu()
    gpu = fake.Gpu(Path(os.environ["STEPSCOPE_CUPTI"]).parent)
    gpu.set_clock(*CLOCK)
    gpu.use(0)
    _kept["gpu"] = gpu
    _pretend(torch)
    # Operators whose inside is ours, so that launches can lie in them.
    library = torch.library.Library("gpu_check", "DEF")
    for name, body in (("mm", _multiply), ("copy", _copy)):
        library.define(f"{name}(Tensor x) -> ()")
        library.impl(name, body, "CPU")
    x = torch.ones(1)

    def step():
        torch.ops.gpu_check.mm(x)
        torch.ops.gpu_check.copy(x)
        _replay_graph()

    yield step


def _pretend(torch):
    """What PyTorch says and does once a program uses a GPU, as far as anybody asks here."""
    torch.cuda.is_initialized = lambda: True
    torch.cuda.synchronize = _synchronize
    torch.cuda.is_current_stream_capturing = lambda: False
    for call, _ in list(torch.cuda._queued_calls):
        if call.__module__.startswith("stepscope"):
            call()


def _multiply(x):
    with _inside_an_operator():
        _launch_kernel("_Z4gemmPf", "gemm(float*)", 50 * US, stream=7, grid=1056, blocks=8, percent=100)
        _launch_kernel("_Z4gemmPf", "gemm(float*)", 70 * US, stream=13, grid=132, blocks=1, percent=12.5)


def _copy(x):
    fake = fake_gpu()
    with _inside_an_operator():
        correlation = _call("cudaMemcpyAsync", fake.MEMCPY_ASYNC)
        # Number 1 from the host to the device; memory 2 is pinned, 3 the device's.
        fields = {"direction": 1, "source": 2, "destination": 3, "bytes": 4096}
        _work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", fake.MEMCPY, 30 * US, 7, correlation, fields, bytes=4096)
        correlation = _call("cudaMemsetAsync", fake.MEMSET_ASYNC)
        fields = {"memory": 3, "bytes": 512}
        _work("gpu_memset", "Memset (Device)", fake.MEMSET, 5 * US, 7, correlation, fields, bytes=512)
        # One of the calls that torch.profiler leaves out.
        times = {"start": time.monotonic_ns() - 2, "end": time.monotonic_ns() - 1}
        _put(fake.RUNTIME, call=fake.GET_DEVICE, thread=fake.thread(), correlation=_next_correlation(), **times)


@contextmanager
def _inside_an_operator():
    """Launches lie well within the operator: clocks of two profilers are compared."""
    time.sleep(0.0003)
    yield
    time.sleep(0.0003)


def _launch_kernel(mangled, name, dur_ns, stream, grid, blocks, percent):
    fake = fake_gpu()
    correlation = _call("cudaLaunchKernel", fake.LAUNCH_KERNEL)
    fields = {"name": mangled, "grid": (grid, 1, 1), "block": (256, 1, 1), "registers": 32}
    arguments = {**SHAPE, "grid": [grid, 1, 1], "blocks per SM": blocks, "est. achieved occupancy %": percent}
    _work("kernel", name, fake.KERNEL, dur_ns, stream, correlation, fields, **arguments)


def _replay_graph():
    fake = fake_gpu()
    correlation = _call("cudaGraphLaunch", fake.GRAPH_LAUNCH)
    for node in (41, 42):
        fields = {"name": "_Z4reluPf", "grid": (132, 1, 1), "block": (256, 1, 1), "registers": 32}
        fields.update(graph=3, graph_node=node)
        arguments = {**SHAPE, "grid": [132, 1, 1], "blocks per SM": 1, "est. achieved occupancy %": 12.5}
        arguments.update({"graph id": 3, "graph node id": node})
        _work("kernel", "relu(float*)", fake.KERNEL, 10 * US, 7, correlation, fields, **arguments)


def _synchronize(*_):
    """Waits until the planted work would be done."""
    fake = fake_gpu()
    begin_ns, thread = time.monotonic_ns(), fake.thread()
    while time.monotonic_ns() < _kept["is_done_ns"] + MS:
        time.sleep(0.0002)
    end_ns, correlation = time.monotonic_ns(), _next_correlation()
    times = {"start": begin_ns, "end": end_ns}
    _put(fake.RUNTIME, call=fake.STREAM_SYNCHRONIZE, thread=thread, correlation=correlation, **times)
    _row("cuda_runtime", "cudaStreamSynchronize", begin_ns, end_ns, _host(), {"correlation": correlation})
    _put(fake.WAIT, what=3, correlation=correlation, context=1, stream=7, event=fake.NONE, **times)
    _row("cuda_sync", "Stream Sync", begin_ns, end_ns, (0, 7), {"correlation": correlation, "stream": 7})


def _call(name, number):
    """A call that enqueues something; its correlation."""
    fake = fake_gpu()
    correlation, begin_ns = _next_correlation(), time.monotonic_ns()
    end_ns = begin_ns + 5 * US
    times = {"start": begin_ns, "end": end_ns}
    _put(fake.RUNTIME, call=number, thread=fake.thread(), correlation=correlation, **times)
    _row("cuda_runtime", name, begin_ns, end_ns, _host(), {"correlation": correlation})
    return correlation


def _work(category, name, kind, dur_ns, stream, correlation, fields, **arguments):
    """Device work that begins when what was enqueued before is done."""
    begin_ns = max(time.monotonic_ns() + 20 * US, _kept["is_done_ns"])
    end_ns = _kept["is_done_ns"] = begin_ns + dur_ns
    _put(kind, start=begin_ns, end=end_ns, device=0, context=1, stream=stream, correlation=correlation, **fields)
    arguments.update(device=0, stream=stream, correlation=correlation)
    _row(category, name, begin_ns, end_ns, (0, stream), arguments)


def _put(kind, **values):
    _kept["gpu"].put(kind, **values)


def _next_correlation():
    _kept["correlation"] += 1
    return _kept["correlation"]


def _host():
    import threading

    return os.getpid(), threading.get_native_id()


def _row(category, name, begin_ns, end_ns, thread, arguments):
    _kept["rows"].append((category, name, begin_ns, end_ns, thread, arguments))


class StandIn:
    """``torch.profiler`` on the host, with rows of the device that it would have had."""

    def __init__(self, torch):
        self._profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

    def start(self):
        _kept["rows"] = []
        self._profile.start()

    def stop(self):
        self._profile.stop()
        # The real one stays subscribed to CUPTI once it has run.
        if not _kept["has_subscriber"]:
            _kept["has_subscriber"] = True
            _kept["gpu"].cupti.fake_other(1)

    def export_chrome_trace(self, path):
        self._profile.export_chrome_trace(path)
        document = json.loads(Path(path).read_text())
        to_unix_ns = time.time_ns() - time.monotonic_ns() - document["baseTimeNanoseconds"]
        document["deviceProperties"] = [DEVICE]
        for category, name, begin_ns, end_ns, (process, thread), arguments in _kept["rows"]:
            times = {"ts": (begin_ns + to_unix_ns) / 1000, "dur": (end_ns - begin_ns) / 1000}
            row = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, **times, "args": arguments}
            document["traceEvents"].append(row)
        Path(path).write_text(json.dumps(document))
