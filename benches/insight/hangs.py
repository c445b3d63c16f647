"""Faults with which a job does not go on: a rank waits for one that does not come, and gives up after a while."""

import time

import torch
from torch import distributed
from torch.utils.data import DataLoader

from .input import Samples
from .models import samples, train
from .planted import fault
from .ranks import learner

# Longer than the others wait.
FOREVER_S = 30


@fault("job.hang", rank=1, ranks=2, steps=15, step_time=None, fails=True)
def skipped_collective(job):
    """One rank leaves out a collective of a step, and waits in the next one for its end."""
    width, at = job.draw.choice([128, 192]), job.draw.randrange(6, 10)
    model, optimizer = learner(width)
    batch = samples(64, width)
    for step in job.steps():
        loss = train(model, optimizer, batch)
        if job.rank == 1 and step == at and not job.fixed:
            time.sleep(FOREVER_S)
        distributed.all_reduce(loss)


@fault("job.hang", rank=1, ranks=2, steps=15, step_time=None, fails=True)
def stuck_in_loader(job):
    """The loader of one rank never gives its next batch."""
    width, at = job.draw.choice([128, 192]), job.draw.randrange(6, 10)
    model, optimizer = learner(width)

    def read(index):
        if index == 16 * at and job.rank == 1 and not job.fixed:
            time.sleep(FOREVER_S)

    for batch in job.steps(DataLoader(Samples(16 * job.count, width, read), batch_size=16)):
        train(model, optimizer, batch)


@fault("job.hang", anywhere=True, ranks=2, steps=15, step_time=None, fails=True)
def crossed_collectives(job):
    """Ranks call two collectives in another order."""
    width, at = job.draw.choice([128, 192]), job.draw.randrange(6, 10)
    model, optimizer = learner(width)
    batch, values = samples(64, width), torch.zeros(1000)
    for step in job.steps():
        train(model, optimizer, batch)
        if job.rank == 1 and step == at and not job.fixed:
            distributed.all_reduce(values)
            distributed.barrier()
        else:
            distributed.barrier()
            distributed.all_reduce(values)


@fault("job.hang", rank=1, ranks=2, steps=15, step_time=None, fails=True)
def mismatched_shapes(job):
    """One rank reduces a tensor of another size: the last batch of its data is a smaller one."""
    reduces_another_once(job, torch.zeros(64, 128), torch.zeros(48, 128))


@fault("job.hang", rank=1, ranks=2, steps=15, step_time=None, fails=True)
def mismatched_types(job):
    """One rank reduces as many numbers as the other, of another type."""
    reduces_another_once(job, torch.zeros(1000), torch.zeros(1000, dtype=torch.float64))


def reduces_another_once(job, usual, other):
    """All ranks reduce ``usual`` after each step, and once one of them ``other``."""
    width, at = job.draw.choice([128, 192]), job.draw.randrange(6, 10)
    model, optimizer = learner(width)
    batch = samples(64, width)
    for step in job.steps():
        train(model, optimizer, batch)
        distributed.all_reduce(other if job.rank == 1 and step == at and not job.fixed else usual)
