"""The same training step under torch.profiler and under Stepscope, memory recorded; prints what torch.profiler saw.

Usage: memory.py RUN
"""

import json
import sys

import torch
import torch.profiler
from stepscope.profiler import profile

torch.manual_seed(0)
torch.set_num_threads(1)

model = torch.nn.Sequential(
    torch.nn.Conv1d(4, 16, 3, padding=1),
    torch.nn.GELU(),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 32, 64),
    torch.nn.LayerNorm(64),
    torch.nn.Dropout(0.1),
    torch.nn.Linear(64, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
inputs, targets = torch.randn(8, 4, 32), torch.randint(0, 10, (8,))


def step():
    optimizer.zero_grad()
    with torch.profiler.record_function("forward"):
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()


def under_torch():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
        step()
    left = prof.profiler.kineto_results.experimental_event_tree()
    allocations = []
    while left:
        event = left.pop()
        left.extend(event.children)
        if event.tag == torch._C._profiler._EventType.Allocation:
            allocations.append((event.start_time_ns, event.typed[1].alloc_size))
    operators = {row.key: [row.cpu_memory_usage, row.self_cpu_memory_usage] for row in prof.key_averages()}
    return {"bytes": [size for _, size in sorted(allocations)], "operators": operators}


step()
step()
# PyTorch knows the size of what is freed only when it was allocated under a profiler: the gradients of the step before.
under_torch()
before = under_torch()
with profile(run=sys.argv[1], profile_memory=True):
    step()
after = under_torch()
print(json.dumps({"before": before, "after": after}))
