"""Tensor parallel: each rank has a part of every layer's weights and sees the whole batch.

The first layer of a block is split by outputs and the second by inputs, so that a block needs one all-reduce forward,
for its output, and one backward, for the gradient of its input.

    torchrun --nproc-per-node 4 examples/distributed/tensor_parallel.py
"""

import job
import torch
import torch.distributed as distributed
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Block(nn.Module):
    """A residual block of two linear layers."""

    def __init__(self, width):
        super().__init__()
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, inputs):
        return inputs + self.narrow(torch.relu(self.wide(inputs)))


def main():
    steps = job.begin(__doc__)
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("tensor",))
    model = nn.Sequential(*(Block(64) for _ in range(2)))
    for block in model:
        parallelize_module(block, mesh, {"wide": ColwiseParallel(), "narrow": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    samples = torch.Generator().manual_seed(0)
    for step in range(steps):
        inputs = torch.randn(32, 64, generator=samples)
        loss = (model(inputs) - inputs.flip(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        job.say(step, loss.item())


main()
job.end()
