"""Trains until it is killed, and keeps its own count where a kill cannot lose it.

Usage: killed.py COUNTERS [RUN]

COUNTERS is a file of two numbers, mapped and shared: ops finished, steps finished. Each step is also printed. With RUN
the program records itself.
"""

import mmap
import os
import sys

import torch

OPS_PER_STEP = 50


def train(counters):
    x = torch.zeros(16)
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    # One store each: `struct.pack_into` would write a zero first, and the kill may come between.
    finished = memoryview(counters).cast("q")
    for step in range(1_000_000):
        for _ in range(OPS_PER_STEP):
            torch.erfinv(x)
            finished[0] += 1
        model(x).sum().backward()
        optimizer.step()
        finished[1] = step + 1
        print(step, flush=True)


def main():
    file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, 16)
    counters = mmap.mmap(file, 16)
    print("pid", os.getpid(), flush=True)
    if len(sys.argv) > 2:
        from stepscope.profiler import profile

        prof = profile(run=sys.argv[2])
        prof.start()
    train(counters)


main()
