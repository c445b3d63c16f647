"""Trains a small model, and runs one op on a thread.

With a run folder as its argument the program records itself, once what PyTorch does only the first time is done. It
prints how often each op ran according to the release's own profiler.
"""

import json
import sys
import threading

import torch
import torch.profiler

STEPS = 5


def train():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(4, 8, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.LayerNorm(48), torch.nn.Linear(48, 3)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for _ in range(STEPS):
        x, y = torch.randn(2, 4, 8), torch.randint(0, 3, (2,))
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def on_a_thread():
    thread = threading.Thread(target=torch.erfinv, args=(torch.zeros(4),), name="thread")
    thread.start()
    thread.join()


def count_and_record(run):
    from stepscope.profiler import profile

    train()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        train()
    with profile(run=run):
        train()
    print(json.dumps({average.key: average.count for average in prof.key_averages()}))


if len(sys.argv) > 1:
    count_and_record(sys.argv[1])
else:
    train()
    on_a_thread()
