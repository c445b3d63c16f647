"""One of two ranks of gloo: prints what is issued in which group, with the number that PyTorch gives it.

A group is destroyed on the way, and one is made late.
"""

import json
import os

import torch
import torch.distributed as distributed
from leave_together import leave_together

distributed.init_process_group("gloo")
rank = distributed.get_rank()
world = distributed.group.WORLD
first, second = distributed.new_group([0, 1]), distributed.new_group([0, 1], group_desc="mesh_dp")
expected = []


def note(group):
    counted = group._get_backend(torch.device("cpu"))._get_sequence_number_for_group()
    expected.append((group.group_name, counted))


for turn in range(3):
    for group in (world, first, second):
        distributed.all_reduce(torch.ones(4), group=group)
        note(group)
distributed.broadcast(torch.ones(4), 0, group=second)
note(second)
if rank == 0:
    distributed.send(torch.ones(4), 1, group=first)
else:
    distributed.recv(torch.ones(4), 0, group=first)
note(first)
distributed.barrier(group=second)
note(second)
one_by_one = len(expected)
works = []
for turn in range(4):
    for group in (first, second):
        works.append(distributed.all_reduce(torch.ones(1000), group=group, async_op=True))
        note(group)
late = distributed.new_group([0, 1])
[work.wait() for work in works]
distributed.all_reduce(torch.ones(4), group=second)
note(second)
# While works of another one wait.
works = []
for turn in range(5):
    works.append(distributed.all_reduce(torch.ones(1 << 20), group=second, async_op=True))
    note(second)
distributed.destroy_process_group(first)
[work.wait() for work in works]
for group in (second, late, world):
    distributed.all_reduce(torch.ones(4), group=group)
    note(group)
distributed.barrier()
note(world)
del works, world, first, second, late, group
leave_together()
# At once: torchrun starts Python without buffers, and both ranks write into one pipe.
os.write(1, (json.dumps({"rank": rank, "expected": expected, "one_by_one": one_by_one}) + "\n").encode())
