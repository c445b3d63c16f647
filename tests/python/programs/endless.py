"""Trains for some seconds; each step says which it is, and one op of it is called as often as its number says.

Usage: endless.py SECONDS [STEP SECONDS_OF_IT]

Each step is printed before it begins. One step can take longer; the program does not end before it. The program ends with an exception of its own.
"""

import sys
import time

import torch


def main():
    seconds, slow_step, slow_seconds = [*map(float, sys.argv[1:]), -1, 0][:3]
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    until = time.monotonic() + seconds
    step = 0
    while time.monotonic() < until or step <= slow_step:
        print(step, flush=True)
        for _ in range(200):
            torch.erfinv(torch.zeros(4))
        model(torch.ones(2, 16)).sum().backward()
        if step == slow_step:
            time.sleep(slow_seconds)
        optimizer.step()
        time.sleep(0.01)
        step += 1
    raise ArithmeticError("the end")


main()
