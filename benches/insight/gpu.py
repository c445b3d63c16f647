"""Faults of a real job on one GPU. They are run where there is one; a simulated device has the same faults everywhere."""

import time

import torch
from torch import nn
from torch.nn import functional

from .models import Attention
from .planted import control, fault


def network(width, depth, dtype=torch.bfloat16, each=None):
    """Layers of two products with an activation between them; `each` is called after each layer."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, inputs):
            outputs = inputs + self.down(functional.gelu(self.up(inputs)))
            if each is not None:
                each(outputs)
            return outputs

    return nn.Sequential(*(Layer() for _ in range(depth))).to("cuda", dtype)


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def train(model, optimizer, inputs):
    """A step without a fault; returns its loss."""
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def batch(rows, width, dtype=torch.bfloat16):
    return torch.randn(rows, width, device="cuda", dtype=dtype)


@fault("host.sync", names=("aten::item", "aten::_local_scalar_dense", "cudaStreamSynchronize"), step_time="mean")
def gpu_item_in_each_layer(job):
    """Each layer reads a value from the device to look for overflow."""

    def check(outputs):
        if not job.fixed and outputs.abs().max().item() > 1e30:  # planted
            raise OverflowError

    width = job.draw.choice([2048, 2560])
    model, inputs = network(width, job.draw.randrange(14, 20), each=check), batch(2048, width)
    optimizer = optimizer_of(model)
    for _ in job.steps():
        train(model, optimizer, inputs)


@fault("copy.pageable", names=("Memcpy HtoD (Pageable -> Device)", "aten::copy_"), step_time="mean")
def gpu_pageable_batches(job):
    """Batches are copied from memory that is not pinned."""
    width, rows = job.draw.choice([1024, 1280]), job.draw.choice([8192, 12288])
    model = network(width, 4)
    optimizer = optimizer_of(model)
    batches = [torch.randn(rows, width) for _ in range(4)]
    if job.fixed:
        batches = [samples.pin_memory() for samples in batches]
    for step in job.steps():
        inputs = batches[step % 4].to("cuda", non_blocking=True)  # planted
        train(model, optimizer, inputs.to(torch.bfloat16))


@fault("memory.device_allocations", names=("cudaMalloc", "cudaFree"), step_time="mean")
def gpu_cache_emptied(job):
    """Each step gives its memory back to the driver, and asks for it again."""
    width = job.draw.choice([1024, 1280, 1536])
    model, inputs = network(width, job.draw.randrange(6, 10)), batch(4096, width)
    optimizer = optimizer_of(model)
    for _ in job.steps():
        train(model, optimizer, inputs)
        if not job.fixed:
            torch.cuda.empty_cache()  # planted


@fault(
    "launch.short_kernels",
    "host.tiny_operators",
    names=("aten::add", "aten::mul", "cudaLaunchKernel"),
    step_time="mean",
)
def gpu_short_kernels(job):
    """A weighted sum over many small tensors is one operator after another."""
    count = job.draw.randrange(600, 900)
    model, inputs = network(512, 3), batch(1024, 512)
    optimizer = optimizer_of(model)
    parts, weights = torch.randn(count, 64, device="cuda"), torch.randn(count, 1, device="cuda")
    for _ in job.steps():
        train(model, optimizer, inputs)
        if job.fixed:
            total = (parts * weights).sum(0)
        else:
            total = torch.zeros(64, device="cuda")
            for index in range(count):  # planted
                total = total + parts[index] * weights[index]  # planted
        assert total.shape == (64,)


@fault("compute.tensor_cores", names=("aten::mm", "aten::addmm", "sgemm"), step_time="mean")
def gpu_float32_products(job):
    """Products of 32-bit floats run without tensor cores."""
    torch.set_float32_matmul_precision("high" if job.fixed else "highest")
    width = job.draw.choice([1024, 1280, 1536])
    model, inputs = network(width, 4, torch.float32), batch(4096, width, torch.float32)
    optimizer = optimizer_of(model)
    for _ in job.steps():
        train(model, optimizer, inputs)


@fault("compute.double_precision", names=("aten::mm", "aten::addmm", "dgemm", "d884gemm"), step_time="mean")
def gpu_double_precision(job):
    """The model was made of 64-bit floats."""
    torch.set_float32_matmul_precision("high")
    dtype = torch.float32 if job.fixed else torch.float64
    width = job.draw.choice([768, 1024])
    model, inputs = network(width, 4, dtype), batch(4096, width, dtype)
    optimizer = optimizer_of(model)
    for _ in job.steps():
        train(model, optimizer, inputs)


@fault("compute.gemm_shapes", names=("aten::mm", "aten::addmm"), step_time="mean")
def gpu_odd_sizes(job):
    """The sizes of the layers are odd, and the library's slow kernels have to serve."""
    width = job.draw.choice([1021, 1277]) + (3 if job.fixed else 0)
    model, inputs = network(width, 4), batch(8192, width)
    optimizer = optimizer_of(model)
    for _ in job.steps():
        train(model, optimizer, inputs)


@fault("attention.unfused", names=("aten::softmax", "aten::_softmax", "aten::bmm", "aten::matmul"), step_time="mean")
def gpu_attention_by_parts(job):
    """Attention writes its scores to memory, instead of one kernel that keeps them."""

    def by_parts(queries, keys, values):
        scores = queries @ keys.transpose(-2, -1) * queries.shape[-1] ** -0.5  # planted
        length = scores.shape[-1]
        hidden = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ values  # planted

    def whole(queries, keys, values):
        return functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)

    attend = whole if job.fixed else by_parts
    length = job.draw.choice([1024, 1536, 2048])
    model = nn.Sequential(*(Attention(512, 8, attend) for _ in range(4))).to("cuda", torch.bfloat16)
    optimizer, inputs = optimizer_of(model), torch.randn(4, length, 512, device="cuda", dtype=torch.bfloat16)
    for _ in job.steps():
        train(model, optimizer, inputs)


@fault("compute.unfused", names=("aten::mul", "aten::add", "aten::tanh", "aten::pow"), step_time="mean")
def gpu_unfused(job):
    """A chain of element-wise operators reads and writes its values once each."""

    def gelu(inputs):
        return 0.5 * inputs * (1 + torch.tanh(0.79788456 * (inputs + 0.044715 * inputs**3)))  # planted

    activation = torch.compile(gelu) if job.fixed else gelu
    width = job.draw.choice([768, 1024])

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, inputs):
            return self.down(activation(self.up(inputs)))

    model = nn.Sequential(*(Layer() for _ in range(4))).to("cuda", torch.bfloat16)
    optimizer, inputs = optimizer_of(model), batch(16384, width)
    for _ in job.steps():
        train(model, optimizer, inputs)


@fault("optimizer.for_loop", names=("Adam", "optimizer.step"), step_time="mean")
def gpu_optimizer_for_loop(job):
    """Adam updates each of many parameters by itself."""
    width, depth = job.draw.choice([256, 384]), job.draw.randrange(30, 50)
    model, inputs = network(width, depth), batch(1024, width)
    how = {"fused": True} if job.fixed else {"foreach": False}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, **how)  # planted
    for _ in job.steps():
        train(model, optimizer, inputs)


@fault("host.python", "host.code", step_time="mean")
def gpu_waits_for_python(job):
    """A metric is counted by Python before the next step, while the device has nothing to do."""
    width, count = job.draw.choice([768, 1024]), job.draw.randrange(60_000, 120_000)
    model, inputs = network(width, 6), batch(2048, width)
    optimizer = optimizer_of(model)
    words = [str(number % 977) for number in range(count)]
    for _ in job.steps():
        loss = train(model, optimizer, inputs)
        if not job.fixed:
            lengths = {}
            for word in words:  # planted
                lengths[word] = lengths.get(word, 0) + len(word)  # planted
        assert loss.shape == ()


class Slow(torch.utils.data.Dataset):
    """Samples that take some time to make."""

    def __init__(self, count, width, sample_ms):
        self.count, self.width, self.sample_ms = count, width, sample_ms

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        end = time.perf_counter() + self.sample_ms / 1e3
        while time.perf_counter() < end:
            sample = torch.randn(self.width)
        return sample


@fault("input.main_process", anywhere=True, step_time="mean")
def gpu_no_workers(job):
    """Samples are made by the training process itself."""
    width, rows = 1024, 64
    model = network(width, 4)
    optimizer = optimizer_of(model)
    data = Slow(job.count * rows, width, job.draw.choice([0.2, 0.3]))
    workers = {"num_workers": 8, "persistent_workers": True} if job.fixed else {}
    for samples in job.steps(torch.utils.data.DataLoader(data, rows, pin_memory=True, **workers)):
        train(model, optimizer, samples.to("cuda", torch.bfloat16, non_blocking=True))


@control()
def gpu_busy(job):
    """Large products: the device does what it can."""
    width = job.draw.choice([2048, 2560])
    model, inputs = network(width, 8), batch(8192, width)
    optimizer = optimizer_of(model)
    for _ in job.steps():
        train(model, optimizer, inputs)


@control()
def gpu_fed_by_workers(job):
    """Pinned batches come from workers in time, and are copied beside what runs."""
    width, rows = 1536, 4096
    model = network(width, 8)
    optimizer = optimizer_of(model)
    data = [torch.randn(rows, width, dtype=torch.bfloat16) for _ in range(job.count)]
    for samples in job.steps(torch.utils.data.DataLoader(data, None, pin_memory=True, num_workers=4)):
        train(model, optimizer, samples.to("cuda", non_blocking=True))


@control()
def gpu_graph(job):
    """A step is one graph."""
    width = job.draw.choice([512, 768])
    model, inputs = network(width, 12), batch(2048, width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=True)
    beside = torch.cuda.Stream()
    with torch.cuda.stream(beside):
        for _ in range(3):
            train(model, optimizer, inputs)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train(model, optimizer, inputs)
    for _ in job.steps():
        with torch.profiler.record_function("ProfilerStep#graph"):
            graph.replay()
