"""Data parallel: each rank has the whole model and a part of the batch; gradients are averaged by all-reduce.

torchrun --nproc-per-node 4 examples/distributed/ddp.py
"""

import job
import torch
import torch.distributed as distributed
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main():
    steps = job.begin(__doc__)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    samples = torch.Generator().manual_seed(distributed.get_rank())
    for step in range(steps):
        inputs = torch.randn(32, 64, generator=samples)
        targets = inputs[:, :10].argmax(1)
        loss = cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # The loss of the whole batch, to print it.
        mean = loss.detach() / distributed.get_world_size()
        distributed.all_reduce(mean)
        job.say(step, mean.item())


main()
job.end()
