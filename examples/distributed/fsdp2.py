"""Fully sharded data parallel: parameters, gradients and optimizer states are split over the ranks.

Before a layer runs, its parameters are put together by all-gather; its gradients are summed and split again by
reduce-scatter.

    torchrun --nproc-per-node 4 examples/distributed/fsdp2.py
"""

import job
import torch
import torch.distributed as distributed
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy


def main():
    steps = job.begin(__doc__)
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("shard",))
    blocks = [nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)) for _ in range(3)]
    model = nn.Sequential(*blocks, nn.Linear(64, 10))
    for block in blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    samples = torch.Generator().manual_seed(distributed.get_rank())
    for step in range(steps):
        inputs = torch.randn(32, 64, generator=samples)
        targets = inputs[:, :10].argmax(1)
        loss = cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        job.say(step, loss.item())


main()
job.end()
