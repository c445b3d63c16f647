"""Faults of one rank, for which the others wait."""

import gc
import os
import time

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from .input import Samples
from .interference import burning
from .models import perceptron, samples, train
from .planted import fault


def learner(width, depth=3):
    model = DistributedDataParallel(perceptron(width, depth))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def run_pipeline(job, layers, inputs, micro_batches):
    """Trains a pipeline of two stages, with this number of layers on this rank."""
    width = inputs.shape[1]
    module = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)])
    stage = PipelineStage(module, job.rank, job.ranks, torch.device("cpu"))
    schedule = Schedule1F1B(stage, micro_batches, loss_fn=functional.mse_loss)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    for _ in job.steps():
        optimizer.zero_grad()
        if job.rank == 0:
            schedule.step(inputs)
        else:
            schedule.step(target=inputs, losses=[])
        optimizer.step()


def compute_more(job, rank, widths, sizes, rows):
    """All ranks train alike, and one has something else to compute."""
    width, size = job.draw.choice(widths), job.draw.choice(sizes)
    model, optimizer = learner(width)
    batch, extra = samples(rows, width), torch.randn(size, size)
    for _ in job.steps():
        if job.rank == rank and not job.fixed:
            extra = torch.tanh(extra @ extra)
        train(model, optimizer, batch)


@fault("rank.slow", rank=1, ranks=2)
def more_work_on_a_rank(job):
    """One rank computes what the other does not."""
    compute_more(job, rank=1, widths=[512, 640], sizes=[1024, 1152], rows=512)


@fault("rank.slow", rank=2, ranks=4)
def slow_rank_of_four(job):
    """One of four ranks computes what the others do not."""
    torch.set_num_threads(1)
    compute_more(job, rank=2, widths=[192, 256], sizes=[768, 896], rows=64)


@fault("rank.slow", "step.slower", rank=1, ranks=2, step_time="mean")
def slow_from_the_middle(job):
    """One rank gets slow when a third of the steps are done."""
    width, size = job.draw.choice([256, 320]), job.draw.choice([640, 768])
    model, optimizer = learner(width)
    batch, extra = samples(128, width), torch.randn(size, size)
    for step in job.steps():
        if job.rank == 1 and not job.fixed and step > job.count / 3:
            extra = torch.tanh(extra @ extra)
        train(model, optimizer, batch)


@fault("rank.slow", "input.main_process", rank=1, ranks=2)
def slow_loader_on_a_rank(job):
    """The store of one rank is slow."""
    width, latency_s = job.draw.choice([256, 320]), job.draw.uniform(0.002, 0.003)
    is_slow = job.rank == 1 and not job.fixed
    data = Samples(16 * job.count, width, lambda index: time.sleep(latency_s if is_slow else 0))
    model, optimizer = learner(width)
    for batch in job.steps(DataLoader(data, batch_size=16)):
        train(model, optimizer, batch)


@fault("rank.slow", "host.cpu_contention", rank=1, ranks=2)
def neighbours_of_a_rank(job):
    """Other processes use the core of one rank."""
    width = job.draw.choice([320, 384, 448])
    cores = sorted(os.sched_getaffinity(0))
    core = cores[job.rank % len(cores)]
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})
    model, optimizer = learner(width)
    batch = samples(128, width)
    with burning(2 if job.rank == 1 and not job.fixed else 0, core):
        for _ in job.steps():
            train(model, optimizer, batch)


@fault("stage.imbalance", "rank.slow", rank=1, ranks=2)
def large_last_stage(job):
    """The last stage of a pipeline has most of the layers."""
    width, layers = job.draw.choice([256, 320, 384]), 8
    of_first = layers // 2 if job.fixed else 1
    count = of_first if job.rank == 0 else layers - of_first
    run_pipeline(job, count, torch.randn(256, width), micro_batches=4)


@fault("rank.lengths", anywhere=True, ranks=2)
def unequal_lengths(job):
    """Ranks get batches of very different lengths, now the one and now the other the longer."""
    width, longest = job.draw.choice([192, 256]), job.draw.choice([768, 1024])
    model, optimizer = learner(width)
    for step in job.steps():
        shares = [job.draw.uniform(0.05, 1) for _ in range(job.ranks)]
        share = sum(shares) / job.ranks if job.fixed else shares[job.rank]
        train(model, optimizer, samples(int(longest * share), width))


@fault("rank.gc", "host.gc", anywhere=True, ranks=2, step_time="mean")
def collections_out_of_step(job):
    """Each rank collects garbage in steps of its own; all wait for each."""
    index = [[number] for number in range(job.draw.randrange(100_000, 200_000))]
    width, every = job.draw.choice([256, 320]), 2
    model, optimizer = learner(width)
    batch = samples(96, width)
    gc.disable()
    for step in job.steps():
        if step % every == (0 if job.fixed else job.rank):
            gc.collect()
        train(model, optimizer, batch)
    assert index
