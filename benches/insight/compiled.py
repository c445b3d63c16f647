"""Faults of `torch.compile`. The backend is `eager`: what is compiled is not what costs."""

import torch
from torch import nn
from torch.nn import functional

from .planted import fault


class Tagger(nn.Module):
    """Finds a word for each place of a sentence."""

    def __init__(self, width, words):
        super().__init__()
        self.embedding, self.hidden, self.out = (
            nn.Embedding(words, width),
            nn.Linear(width, width),
            nn.Linear(width, words),
        )

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        return self.out(hidden + functional.gelu(self.hidden(hidden)) / tokens.shape[1])


@fault("compile.recompiles", names=("Tagger",))
def recompiles(job):
    """Each step has another length, and the model is compiled for each."""
    torch._dynamo.config.recompile_limit = 1000
    width, first = job.draw.choice([96, 128, 160]), job.draw.randrange(40, 60)
    model = Tagger(width, 200)
    compiled = torch.compile(model, backend="eager", dynamic=job.fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in job.steps():
        tokens = torch.randint(200, (8, first + step))
        loss = functional.cross_entropy(compiled(tokens).flatten(0, 1), tokens.flatten())  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("compile.graph_breaks", names=("Counted",))
def graph_breaks(job):
    """Each layer of a compiled model asks for the value of a tensor."""
    width, depth = job.draw.choice([160, 192]), job.draw.randrange(50, 70)

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
            self.large = 0

        def forward(self, inputs):
            for layer in self.layers:
                inputs = functional.relu(layer(inputs))
                if not job.fixed and inputs.max().item() > 1e6:  # planted
                    inputs = inputs / 1e6
            return inputs

    torch._dynamo.config.recompile_limit = 1000
    torch._dynamo.config.accumulated_recompile_limit = 1000
    model = Counted()
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    inputs = torch.randn(64, width)
    for _ in job.steps():
        loss = compiled(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
