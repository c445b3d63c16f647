"""Healthy jobs: what is in them costs little, or happens once, or cannot be saved. Advice of weight on them is wrong."""

import gc
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from . import input
from .models import Attention, perceptron, samples, train
from .planted import control
from .ranks import learner, run_pipeline


@control()
def nothing_at_all(job):
    """A small model and nothing else."""
    width = job.draw.choice([384, 448, 512])
    model, batch = perceptron(width, 3), samples(192, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in job.steps():
        train(model, optimizer, batch)


@control()
def compute_bound(job):
    """Large products: the machine does what it can."""
    width = job.draw.choice([896, 1024, 1152])
    model, batch = perceptron(width, 3), samples(256, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in job.steps():
        train(model, optimizer, batch)


@control()
def fused_attention(job):
    """A transformer that does it right."""
    width, length = job.draw.choice([128, 192]), job.draw.choice([256, 320])

    def attend(query, key, value):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    model = nn.Sequential(
        Attention(width, 4, attend), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, fused=True)
    inputs = torch.randn(4, length, width)
    for _ in job.steps():
        loss = functional.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@control(steps=80)
def warm_up_only(job):
    """The first step takes longer; it happens once."""
    width = job.draw.choice([384, 448, 512])
    model, batch = perceptron(width, 4), samples(256, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in job.steps():
        train(model, optimizer, batch)
        if step == 0:
            time.sleep(job.draw.uniform(0.3, 0.5))


@control(steps=80)
def harmless_gc(job):
    """The collector is called now and then, and has little to do."""
    width = job.draw.choice([448, 512, 576])
    model, batch = perceptron(width, 4), samples(256, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gc.freeze()
    for step in job.steps():
        train(model, optimizer, batch)
        if step % 20 == 19:
            gc.collect()


@control(steps=80)
def hidden_input(job):
    """The store is slow, but its workers are early enough."""
    width, latency_s = job.draw.choice([896, 1024]), job.draw.uniform(0.0002, 0.0004)
    data = input.Samples(32 * job.count, width, lambda index: time.sleep(latency_s))
    model, optimizer = input.learner(width)
    for inputs, targets in job.steps(DataLoader(data, batch_size=32, num_workers=4)):
        # Each sample in several variants: to take a batch from a worker is a small part of a step.
        train(model, optimizer, (inputs.repeat(12, 1), targets.repeat(12)))


@control()
def rare_logging(job):
    """A line is written and flushed every ten steps."""
    width = job.draw.choice([384, 448, 512])
    model, batch = perceptron(width, 3), samples(192, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with open("train.log", "w") as log:
        for step in job.steps():
            loss = train(model, optimizer, batch)
            if step % 10 == 9:
                print(f"step {step} loss {loss.item():.4f}", file=log, flush=True)


@control(ranks=2)
def balanced_lengths(job):
    """Lengths differ from step to step, not between ranks."""
    width, longest = job.draw.choice([320, 384]), job.draw.choice([384, 512])
    model, optimizer = learner(width)
    for _ in job.steps():
        train(model, optimizer, samples(int(longest * job.draw.uniform(0.5, 1)), width))


@control(ranks=2)
def rank_slightly_slow(job):
    """One rank has three hundredths more to do."""
    width, count = job.draw.choice([384, 448]), 400
    model, optimizer = learner(width)
    batch = samples(count + (count * 3 // 100 if job.rank == 1 else 0), width)
    for _ in job.steps():
        train(model, optimizer, batch)


@control(ranks=2)
def planned_bubble(job):
    """Two equal stages of a pipeline: while it fills and empties, one of them has nothing to do."""
    # Gradients of the inputs, too: the first stage would have less to do without.
    inputs = torch.randn(512, job.draw.choice([320, 384]), requires_grad=True)
    run_pipeline(job, 4, inputs, micro_batches=8)
