"""One rank of a job that trains a tiny model with DistributedDataParallel and gloo: ``ddp.py STEPS [RUN]``.

With RUN it records itself; else somebody records it. It prints its pid before, and each step after it was done.
"""

import contextlib
import os
import sys

import torch
import torch.distributed as distributed
from leave_together import leave_together

STEPS = int(sys.argv[1])

distributed.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def say(word, number):
    # At once: torchrun starts Python without buffers, and four ranks write into one pipe.
    os.write(1, f"{word} {distributed.get_rank()} {number}\n".encode())


def recording():
    if len(sys.argv) < 3:
        return contextlib.nullcontext()
    from stepscope.profiler import profile, schedule

    return profile(schedule=schedule(wait=1, warmup=1, active=STEPS), run=sys.argv[2])


with recording() as recorder:
    say("pid", os.getpid())
    for step in range(STEPS):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        total = torch.ones(3, 5)
        distributed.all_reduce(total)
        if recorder is not None:
            recorder.step()
        say("step", step)
del model, optimizer
leave_together()
