"""A tiny model that is trained in a wrapper: ``parallel_modules.py ddp|fsdp|data-parallel``, of some by several ranks.

Prints the paths of all modules.
"""

import json
import os
import sys

import torch
import torch.distributed as distributed
from leave_together import leave_together


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def wrapped(model, how):
    if how == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if how == "data-parallel":
        return torch.nn.DataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


how = sys.argv[1]
if "RANK" in os.environ:
    distributed.init_process_group("gloo")
torch.manual_seed(0)
model = wrapped(Net(), how)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
names = [name for name, module in model.named_modules() if not isinstance(module, torch.nn.ModuleList)]
del model, optimizer
if distributed.is_initialized():
    leave_together()
if os.environ.get("RANK", "0") == "0":
    print(json.dumps(names))
