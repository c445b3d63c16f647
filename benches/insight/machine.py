"""A host that launches and a device that computes, as PyTorch's profiler would have recorded them: time is simulated, so
that the step of a job is known to the nanosecond."""

import contextlib
import json
import random

PROCESS, THREAD, STREAM, COMMUNICATION_STREAM = 100, 100, 7, 20
DEVICE = {
    "id": 0,
    "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42_297_524_224,
    "computeMajor": 8,
    "computeMinor": 0,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65_536,
    "warpSize": 32,
    "sharedMemPerMultiprocessor": 167_936,
    "numSms": 108,
}
# What a call takes on the host, and what passes before its work begins on an idle device.
LAUNCH_NS, DELAY_NS = 4_500, 2_000
# What a label takes to begin.
LABEL_NS = 500
BYTES_PER_NS = {True: 24, False: 6}
# What each operator takes on the host beside its launches.
OPERATOR_NS = 9_000
BLOCK = 256


class Machine:
    """One host thread and one device, whose times are ns. What is done moves the host's clock on."""

    def __init__(self, seed):
        self.noise = random.Random(seed)
        self.now = 1_000_000
        self.free = {STREAM: 0, COMMUNICATION_STREAM: 0}
        # The part of the device's link that copies have.
        self.link = 1.0
        self.events = []
        self.correlation = 0
        self.links = 0
        self.steps = []
        self.modules = {}
        self.parents = []

    def save(self, file):
        """Writes what happened as a trace."""
        meta = [
            {"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "process_labels", "pid": PROCESS, "tid": 0, "args": {"labels": "CPU"}},
            {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
        ]
        trace = {"schemaVersion": 1, "deviceProperties": [DEVICE], "traceEvents": meta + self.events}
        file.write_text(json.dumps(trace))

    @contextlib.contextmanager
    def step(self):
        begin = self.now
        yield
        self.steps.append(self.now - begin)
        self._host("user_annotation", f"ProfilerStep#{len(self.steps) - 1}", begin)

    @contextlib.contextmanager
    def module(self, name):
        begin, number = self.now, self.modules.setdefault(name, len(self.modules))
        self.parents.append(len(self.events) + 1)
        yield
        ids = {"Python id": self.parents.pop(), "Python module id": number}
        if self.parents:
            ids["Python parent id"] = self.parents[-1]
        self._host("python_function", f"nn.Module: {name}_{number}", begin, **ids)

    @contextlib.contextmanager
    def label(self, name):
        begin = self.now
        self.now += LABEL_NS
        yield
        self._host("user_annotation", name, begin)

    @contextlib.contextmanager
    def op(self, name, shapes=None, types="float", host_ns=OPERATOR_NS):
        begin = self.now
        self.now += host_ns // 2
        yield begin
        self.now += host_ns - host_ns // 2
        arguments = {}
        if shapes:
            arguments = {"Input Dims": shapes, "Input type": [types] * len(shapes)}
        self._host("cpu_op", name, begin, **arguments)

    def connect(self, forward, backward):
        """The operator that begins at `backward` is of the backward pass of the one that begins at `forward`."""
        self.links += 1
        event = {"cat": "fwdbwd", "name": "fwdbwd", "id": self.links, "pid": PROCESS, "tid": THREAD}
        self.events.append({**event, "ph": "s", "ts": forward / 1000})
        self.events.append({**event, "ph": "f", "bp": "e", "ts": backward / 1000})

    def python(self, ns):
        """Code in which nothing is recorded."""
        self.now += int(ns)

    def kernel(self, name, ns, blocks=1728, stream=STREAM):
        correlation = self._call("cudaLaunchKernel", LAUNCH_NS)
        begin = max(self.free[stream], self.now + DELAY_NS)
        # No two kernels take the same.
        self.free[stream] = begin + int(ns * self.noise.uniform(0.99, 1.02))
        self._device("kernel", name, begin, stream, correlation, grid=[blocks, 1, 1], block=[BLOCK, 1, 1])
        return self.free[stream]

    def graph(self, kernels):
        """One call launches kernels, each a name and ns, which follow each other on the device."""
        correlation = self._call("cudaGraphLaunch", LAUNCH_NS)
        for node, (name, ns) in enumerate(kernels):
            begin = max(self.free[STREAM], self.now + DELAY_NS)
            self.free[STREAM] = begin + int(ns * self.noise.uniform(0.99, 1.02))
            ids = {"graph id": 1, "graph node id": node + 1}
            self._device("kernel", name, begin, STREAM, correlation, grid=[108, 1, 1], block=[BLOCK, 1, 1], **ids)

    def after(self, stream, time):
        """Work of the stream begins then at the earliest."""
        self.free[stream] = max(self.free[stream], time)

    def copy(self, size, to_device, is_pinned):
        """Copies; from or to memory that is not pinned the host waits for the end."""
        begin_call = self.now
        begin = max(self.free[STREAM], self.now + LAUNCH_NS + DELAY_NS)
        self.free[STREAM] = end = begin + int(size / min(BYTES_PER_NS[is_pinned], self.link * BYTES_PER_NS[True]))
        self.now = self.now + LAUNCH_NS if is_pinned else end + 1_000
        self.correlation += 1
        self._host("cuda_runtime", "cudaMemcpyAsync", begin_call, correlation=self.correlation)
        host = "Pinned" if is_pinned else "Pageable"
        name = f"Memcpy HtoD ({host} -> Device)" if to_device else f"Memcpy DtoH (Device -> {host})"
        self._device("gpu_memcpy", name, begin, STREAM, self.correlation, bytes=size)

    def wait(self, call="cudaStreamSynchronize", stream=STREAM):
        """The host waits for the device."""
        self._call(call, max(2_000, self.free[stream] - self.now + 1_500))

    def call(self, name, ns):
        """A call of the device's API that launches nothing."""
        self._call(name, ns)

    def sample(self, quantities):
        """What the device says of itself now, by name."""
        for name, value in quantities.items():
            name = f"GPU 0 {name}"
            event = {"ph": "C", "name": name, "pid": PROCESS, "tid": THREAD, "ts": self.now / 1000}
            self.events.append({**event, "args": {name: value}})

    def _call(self, name, ns):
        begin, self.now = self.now, self.now + int(ns)
        self.correlation += 1
        self._host("cuda_runtime", name, begin, correlation=self.correlation)
        return self.correlation

    def _host(self, category, name, begin, **arguments):
        self._add(category, name, begin, self.now - begin, PROCESS, THREAD, arguments)

    def _device(self, category, name, begin, stream, correlation, **arguments):
        arguments.update(device=0, context=1, stream=stream, correlation=correlation)
        self._add(category, name, begin, self.free[stream] - begin, 0, stream, arguments)

    def _add(self, category, name, begin, ns, process, thread, arguments):
        event = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread}
        self.events.append({**event, "ts": begin / 1000, "dur": ns / 1000, "args": arguments})
