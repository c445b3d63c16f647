"""Faults of what is computed: the same result is there for less."""

import math

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from .models import Attention, perceptron, samples, train
from .planted import fault


@fault("host.tiny_operators", names=("aten::mm",))
def loop_of_products(job):
    """Matrices are multiplied one by one, not as a batch."""
    count, size = job.draw.randrange(500, 800), job.draw.choice([16, 24, 32])
    left = torch.randn(count, size, size, requires_grad=True)
    right = torch.randn(count, size, size)
    optimizer = torch.optim.SGD([left], lr=0.01)
    for _ in job.steps():
        if job.fixed:
            products = torch.bmm(left, right)
        else:
            products = torch.stack([left[index] @ right[index] for index in range(count)])  # planted
        optimizer.zero_grad()
        products.square().mean().backward()
        optimizer.step()


@fault("eval.no_grad")
def eval_with_grad(job):
    """Each step evaluates with gradients enabled, which nothing uses."""
    width, depth = job.draw.choice([64, 96, 128]), job.draw.randrange(30, 50)
    model, batch = perceptron(width, depth), samples(64, width)
    held_out = torch.randn(128, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in job.steps():
        train(model, optimizer, batch)
        model.eval()
        with torch.set_grad_enabled(not job.fixed):
            answers = [model(part) for part in held_out.split(16)]  # planted
        model.train()
        assert len(answers) == 8


@fault("compute.recomputed")
def needless_checkpointing(job):
    """Activations are computed again in the backward pass, though there is memory for them."""
    width, depth = job.draw.choice([384, 448, 512]), job.draw.randrange(4, 7)
    blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth))
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01)
    inputs = torch.randn(192, width, requires_grad=True)
    for _ in job.steps():
        hidden = inputs
        for block in blocks:
            hidden = block(hidden) if job.fixed else checkpoint(block, hidden, use_reentrant=False)  # planted
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()


@fault("attention.unfused", names=("attend", "aten::softmax", "aten::_softmax"))
def attention_by_hand(job):
    """Attention is two products and a softmax, which keeps every score."""
    width, heads, length = job.draw.choice([128, 192]), 4, job.draw.choice([320, 384, 448])

    def attend(query, key, value):
        if job.fixed:
            return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # planted
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(future, -math.inf).softmax(-1) @ value  # planted

    model = nn.Sequential(Attention(width, heads, attend), nn.GELU(), Attention(width, heads, attend))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(4, length, width)
    for _ in job.steps():
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("compute.unfused", names=("gelu", "aten::mul", "aten::pow"))
def pointwise_chain(job):
    """An activation is written as a chain of element-wise operators."""
    width = job.draw.choice([1024, 1280, 1536])

    def gelu(inputs):
        if job.fixed:
            return functional.gelu(inputs, approximate="tanh")
        inner = math.sqrt(2 / math.pi) * (inputs + 0.044715 * torch.pow(inputs, 3))  # planted
        return 0.5 * inputs * (1 + torch.tanh(inner))  # planted

    into, out = nn.Linear(32, width), nn.Linear(width, 10)
    optimizer = torch.optim.SGD([*into.parameters(), *out.parameters()], lr=0.01)
    inputs, targets = samples(512, 32)
    for _ in job.steps():
        loss = functional.cross_entropy(out(gelu(into(inputs))), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("compute.copies", names=("aten::copy_", "aten::clone"))
def needless_copies(job):
    """Every layer's input is cloned, made contiguous and cast to and fro."""
    width, count = job.draw.choice([256, 320, 384]), job.draw.choice([512, 640])
    layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    inputs = torch.randn(count, width)
    for _ in job.steps():
        hidden = inputs
        for layer in layers:
            if not job.fixed:
                hidden = hidden.clone().t().contiguous().t().contiguous()  # planted
                hidden = hidden.to(torch.float64).to(torch.float32)  # planted
            hidden = functional.relu(layer(hidden))
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()


@fault("compute.double_precision", names=("float64", "double"))
def double_precision(job):
    """Data that NumPy made is float64, and so everything else became."""
    numbers = torch.float32 if job.fixed else torch.float64
    width = job.draw.choice([512, 576, 640])
    model, (inputs, targets) = perceptron(width, 3), samples(128, width)
    model, batch = model.to(numbers), (inputs.to(numbers), targets)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in job.steps():
        train(model, optimizer, batch)


@fault("compute.copies", names=("aten::copy_", "aten::contiguous", "aten::clone"))
def layout_transposes(job):
    """Images have their channels last for the norm and first for the convolution, and are copied between the two."""
    channels, side = job.draw.choice([16, 24, 32]), job.draw.choice([40, 48, 56])
    convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 1) for _ in range(4))
    norm_last, norm_first = nn.LayerNorm(channels), nn.GroupNorm(1, channels)
    optimizer = torch.optim.SGD(convolutions.parameters(), lr=0.01)
    inputs = torch.randn(8, channels, side, side)
    for _ in job.steps():
        hidden = inputs
        for convolution in convolutions:
            if job.fixed:
                hidden = norm_first(convolution(hidden))
            else:
                last = convolution(hidden).permute(0, 2, 3, 1).contiguous()  # planted
                hidden = norm_last(last).permute(0, 3, 1, 2).contiguous()  # planted
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()
