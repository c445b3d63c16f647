"""Pipeline parallel: each rank has a stage of the model and sends its outputs to the next one.

The batch is cut into microbatches, which are scheduled as 1F1B: a stage that is full runs one forward and one backward
in turn.

    torchrun --nproc-per-node 2 examples/distributed/pipeline.py
"""

import job
import torch
import torch.distributed as distributed
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.functional import mse_loss

MICROBATCHES = 4


def main():
    steps = job.begin(__doc__)
    stage, stages = distributed.get_rank(), distributed.get_world_size()
    layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    schedule = Schedule1F1B(PipelineStage(layers, stage, stages, torch.device("cpu")), MICROBATCHES, loss_fn=mse_loss)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    samples = torch.Generator().manual_seed(0)
    for step in range(steps):
        # The first stage takes the inputs, the last one the targets: both have the same.
        inputs = torch.randn(32, 64, generator=samples)
        losses = []
        optimizer.zero_grad()
        if stage == 0:
            schedule.step(inputs)
        elif stage == stages - 1:
            schedule.step(target=inputs.flip(1), losses=losses)
        else:
            schedule.step()
        optimizer.step()
        if losses:
            job.say(step, torch.stack(losses).mean().item())


main()
job.end()
