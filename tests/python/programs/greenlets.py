"""Greenlets that switch inside of operators, labels and modules: ``greenlets.py``."""

import greenlet
import torch

TURNS = 20


class Switch(torch.autograd.Function):
    """An operator that gives way to the other greenlet in the middle of itself."""

    @staticmethod
    def forward(ctx, x):
        greenlet.getcurrent().parent.switch()
        return x.exp()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Layer(torch.nn.Module):
    def forward(self, x):
        return Switch.apply(x)


def work(number):
    layer = Layer()
    x = torch.ones(4, requires_grad=True)
    for turn in range(TURNS):
        with torch.profiler.record_function(f"label {number}"):
            layer(x).sum()
        torch.erfinv(torch.zeros(4))


workers = [greenlet.greenlet(work) for _ in range(3)]
for number, worker in enumerate(workers):
    worker.switch(number)
while any(not worker.dead for worker in workers):
    for worker in workers:
        if not worker.dead:
            worker.switch()
torch.digamma(torch.zeros(4))
print("done")
