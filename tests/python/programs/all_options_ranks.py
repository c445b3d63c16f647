"""One of two ranks that train with DistributedDataParallel over gloo and call collectives: all options, each profiler.

Usage: all_options_ranks.py FOLDER, with RANK and WORLD_SIZE set. torch.profiler writes FOLDER/torch-RANK.json, then
Stepscope records FOLDER/run and writes FOLDER/stepscope-RANK.json. Prints how many collectives the group has counted
before and after that.
"""

import os
import sys

import torch
import torch.distributed as distributed
import torch.profiler
from leave_together import leave_together
from stepscope.profiler import profile

FOLDER, RANK = sys.argv[1], int(os.environ["RANK"])
OPTIONS = dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"), True)

torch.set_num_threads(1)
torch.manual_seed(0)
store = distributed.FileStore(f"{FOLDER}/store", 2)
distributed.init_process_group("gloo", store=store, rank=RANK, world_size=2)
group = distributed.distributed_c10d._get_default_group()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    distributed.all_reduce(torch.ones(3, 5))
    distributed.broadcast(torch.ones(7, dtype=torch.int64), 1)
    distributed.all_gather([torch.zeros(6, 2), torch.zeros(6, 2)], torch.ones(6, 2))
    distributed.all_gather_into_tensor(torch.zeros(8), torch.ones(4))
    distributed.reduce(torch.ones(5), 0)
    distributed.all_reduce(torch.ones(6).half(), async_op=True).wait()
    if RANK == 0:
        distributed.send(torch.ones(9), 1)
    else:
        distributed.recv(torch.zeros(9), 0)
    distributed.barrier()


for _ in range(3):
    step()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **OPTIONS) as prof:
    step()
prof.export_chrome_trace(f"{FOLDER}/torch-{RANK}.json")
before = group._get_sequence_number_for_group()
with profile(run=f"{FOLDER}/run", **OPTIONS) as prof:
    step()
print(before, group._get_sequence_number_for_group())
prof.export_chrome_trace(f"{FOLDER}/stepscope-{RANK}.json", all_threads=True)
del model, optimizer, group
leave_together()
