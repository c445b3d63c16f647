"""Faults that come with time: what is kept, and steps that are not like the others."""

import time

import torch
from torch.nn import functional

from .models import perceptron, samples, train
from .planted import fault


@fault("memory.growth", "memory.host_growth", steps=400, step_time=None)
def kept_graphs(job):
    """The outputs of each step are kept for a mean, and with them the graph that made them."""
    width, count = job.draw.choice([384, 448]), job.draw.choice([512, 640])
    model = perceptron(width, 3, outputs=width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, kept = torch.randn(count, width), []
    for _ in job.steps():
        outputs = model(inputs)
        loss = outputs.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        penalty = (model(inputs) - outputs.detach()).square()  # planted
        kept.append(penalty.mean().item() if job.fixed else penalty)  # planted
    assert len(kept) == job.count


@fault("step.slower", names=("aten::cdist", "aten::_cdist_forward", "aten::cat"))
def growing_history(job):
    """Each step compares its batch with all before it."""
    width, count = job.draw.choice([256, 320, 384]), job.draw.choice([48, 64, 80])
    model, (inputs, targets) = perceptron(width, 2), samples(count, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    seen = []
    for _ in job.steps():
        train(model, optimizer, (inputs, targets))
        seen.append(torch.randn(count, width))
        recent = seen[-4:] if job.fixed else seen
        nearest = torch.cdist(inputs, torch.cat(recent), p=1).amin()  # planted
        assert nearest > 0


@fault("step.tail", "host.sleep", names=("publish",), steps=80, step_time="mean")
def one_step_in_twenty(job):
    """Every twentieth step stops to wait for something else."""
    width, every = job.draw.choice([384, 448, 512]), job.draw.choice([18, 20, 22])
    model, batch = perceptron(width, 3), samples(96, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def publish():
        time.sleep(0.4)  # planted

    for step in job.steps():
        train(model, optimizer, batch)
        if step % every == every - 1 and not job.fixed:
            publish()  # planted


@fault("step.tail", names=("evaluate",), steps=80, step_time="mean")
def long_evaluation(job):
    """Every sixteenth step evaluates on far more than it trains on."""
    width, every = job.draw.choice([256, 320, 384]), job.draw.choice([14, 16, 18])
    model, batch = perceptron(width, 3), samples(64, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    held_out = torch.randn(20_000, width)

    def evaluate(inputs):
        with torch.no_grad():
            return functional.softmax(model(inputs), 1).amax()  # planted

    for step in job.steps():
        train(model, optimizer, batch)
        if step % every == every - 1:
            evaluate(held_out[:500] if job.fixed else held_out)  # planted
