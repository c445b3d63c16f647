"""Faults of how a job of several ranks communicates."""

import contextlib

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from .models import perceptron, samples, train
from .planted import fault


@fault("comm.no_sync", anywhere=True, ranks=2)
def no_sync_missing(job):
    """Gradients are reduced after each of several passes, though only the last one needs it."""
    width, passes = job.draw.choice([512, 640, 768]), job.draw.choice([4, 5, 6])
    model = DistributedDataParallel(perceptron(width, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parts = [samples(16, width) for _ in range(passes)]
    for _ in job.steps():
        optimizer.zero_grad()
        for number, (inputs, targets) in enumerate(parts):
            is_last = number == passes - 1
            with contextlib.nullcontext() if is_last or not job.fixed else model.no_sync():
                (cross_entropy(model(inputs), targets) / passes).backward()
        optimizer.step()


@fault("comm.small_buckets", anywhere=True, ranks=2)
def small_buckets(job):
    """Each parameter has a bucket of its own."""
    width, depth = job.draw.choice([48, 64, 80]), job.draw.randrange(50, 70)
    size = {} if job.fixed else {"bucket_cap_mb": 0.0001}
    model = DistributedDataParallel(perceptron(width, depth), **size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    batch = samples(16, width)
    for _ in job.steps():
        train(model, optimizer, batch)


@fault("comm.unused_parameters", anywhere=True, ranks=2)
def search_for_unused(job):
    """Each pass searches the graph for parameters that are not used, though all are."""
    width, depth = job.draw.choice([24, 32, 48]), job.draw.randrange(80, 120)
    model = DistributedDataParallel(perceptron(width, depth), find_unused_parameters=not job.fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, foreach=True)
    batch = samples(16, width)
    for _ in job.steps():
        train(model, optimizer, batch)


@fault("comm.barriers", ranks=2)
def barriers(job):
    """Metrics are put together, value by value, and ranks wait for each other after each layer of work."""
    width, count = job.draw.choice([256, 320, 384]), job.draw.randrange(25, 40)
    model = DistributedDataParallel(perceptron(width, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = samples(64, width)
    for _ in job.steps():
        metrics = train(model, optimizer, batch).expand(count).clone()
        if job.fixed:
            distributed.all_reduce(metrics)
            continue
        for metric in metrics:
            distributed.all_reduce(metric)  # planted
            distributed.barrier()  # planted
