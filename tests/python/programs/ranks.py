"""One rank of a job: gloo on the CPU; rank R runs erfinv R + 1 times."""

import torch
import torch.distributed as distributed
from leave_together import leave_together

distributed.init_process_group("gloo")
for _ in range(distributed.get_rank() + 1):
    torch.erfinv(torch.zeros(4))
total = torch.ones(2)
distributed.all_reduce(total)
assert total.tolist() == [2.0, 2.0]
leave_together()
