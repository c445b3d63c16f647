"""Models called in many ways; the run says which module each operator ran in.

Usage: modules.py RUN
"""

import json
import sys

import torch
from stepscope.profiler import profile


class Attention(torch.nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.query = torch.nn.Linear(4, 4)
        self.shared = shared

    def forward(self, x):
        return self.shared(self.query(x))


class Layer(torch.nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.attn = Attention(shared)
        self.skip = torch.nn.Identity()

    def __call__(self, x):
        return super().__call__(x) * 2

    def forward(self, x):
        return self.skip(self.attn(x))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        shared = torch.nn.Linear(4, 4)
        self.layers = torch.nn.ModuleList([Layer(shared) for _ in range(2)])
        self.should_fail = False

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        if self.should_fail:
            raise ValueError("as asked")
        return x


net = Net()
x = torch.ones(2, 4)
original = torch.nn.Module.__call__
net.layers[0].attn(x)  # Called by its own, before it is recorded as a part of anything.
with profile(run=sys.argv[1]):
    net.layers[1].attn(x)
    net(x).sum().backward()
    net.should_fail = True
    try:
        net(x)
    except ValueError:
        pass
    net.should_fail = False
    net.layers.append(Layer(torch.nn.Linear(4, 4)))
    net(x)
    Net()(x)
    for _ in range(3):
        torch.nn.ReLU()(x)
    torch.fx.symbolic_trace(net)(x)
    torch.jit.trace(net, x)(x)
print(json.dumps([[name, type(module).__name__] for name, module in net.named_modules()]))
print(torch.nn.Module.__call__ is original)
