"""The same training step under torch.profiler and under Stepscope; prints what torch.profiler saw, as JSON.

Usage: parity.py RUN
"""

import json
import sys
import threading

import torch
import torch.profiler
from stepscope.profiler import profile

torch.manual_seed(0)
torch.set_num_threads(1)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        self.convolution = torch.nn.Conv1d(16, 16, 3, padding=1)
        self.head = torch.nn.Linear(16, 50)

    def forward(self, tokens):
        with torch.profiler.record_function("embed"):
            x = self.norm(self.embedding(tokens))
        with torch.profiler.record_function("mix"):
            x = x + self.attention(x, x, x, need_weights=False)[0]
            x = x + self.convolution(x.transpose(1, 2)).transpose(1, 2)
        return self.head(torch.nn.functional.gelu(x))


model = Block()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
tokens = torch.randint(0, 50, (2, 12))


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def backward_on_another_thread():
    loss = model(tokens).square().mean()
    thread = threading.Thread(target=loss.backward, name="backward")
    thread.start()
    thread.join()


def under_torch():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        step()
    rows = [
        {
            "name": event.name,
            "parent": event.cpu_parent.name if event.cpu_parent else None,
            "sequence_number": event.sequence_nr,
            "forward_thread": event.fwd_thread,
            "scope": event.scope,
            "dur_us": event.time_range.elapsed_us(),
        }
        for event in prof.events()
    ]
    counts = {average.key: average.count for average in prof.key_averages()}
    return {"rows": rows, "counts": counts}


# The state of AdamW and lazily made buffers exist afterwards.
step()
step()
before = under_torch()
with profile(run=sys.argv[1]):
    step()
after = under_torch()
with profile(run=sys.argv[1] + "-threads"):
    backward_on_another_thread()
print(json.dumps({"before": before, "after": after}))
