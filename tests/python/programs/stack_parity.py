"""The same training step under torch.profiler and under Stepscope, with stacks; prints what torch.profiler saw.

Usage: stack_parity.py RUN
"""

import gc
import json
import sys

import torch
import torch.profiler
from stepscope.profiler import profile

torch.manual_seed(0)
torch.set_num_threads(1)
# A collection would be in the call that is about to enter a label, which is recorded then, and which the label overlaps.
gc.disable()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        self.head = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Identity(), torch.nn.Linear(16, 50))

    def forward(self, tokens):
        with torch.profiler.record_function("embed"):
            x = self.norm(self.embedding(tokens))
        with torch.profiler.record_function("mix"):
            x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.head(torch.nn.functional.gelu(x))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


model = Block()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
tokens = torch.randint(0, 50, (2, 12))


def halves(values):
    for value in values:
        yield value / 2


def step():
    optimizer.zero_grad()
    logits = Double.apply(model(tokens).flatten(0, 1))
    loss = torch.nn.functional.cross_entropy(logits, tokens.flatten())
    loss = sum(halves([loss, loss]))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    sorted([3, 1, 2], key=lambda number: torch.full((), number).item())


def flat(nodes):
    for node in nodes:
        yield node
        yield from flat(node.children)


def around(node):
    while node.parent is not None:
        node = node.parent
        yield node


step()
step()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as prof:
    step()
operators = [
    node for node in flat(prof.profiler.kineto_results.experimental_event_tree()) if node.tag.name == "TorchOp"
]
calls = [(node.name, [call.name for call in around(node) if call.tag.name != "TorchOp"]) for node in operators]
stacks = [(name, [call for call in stack if not call.startswith("nn.Module: ")]) for name, stack in calls]
modules = [(name, [call for call in stack if call.startswith("nn.Module: ")]) for name, stack in calls]
with profile(run=sys.argv[1], with_stack="ops"):
    step()
print(json.dumps({"stacks": stacks, "modules": modules}))
