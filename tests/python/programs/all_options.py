"""A few seeded steps of a small transformer, of which one is recorded with all options at once.

Usage: all_options.py torch|stepscope|nothing FOLDER. The profiler that is named writes what it saw to FOLDER/NAME.json
and FOLDER/NAME-trace.json; Stepscope records FOLDER/run. With ``nothing`` somebody else records the program.
"""

import json
import sys

import torch
import torch.profiler
from torch.profiler import record_function

WAIT, WARMUP = 2, 1
WIDTH, WORDS = 16, 50
OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
SAID = (
    "name overload_name scope is_user_annotation is_async count sequence_nr flow_id flow_type flow_start input_shapes "
    "structured_input_shapes structured_input_strides input_dtypes concrete_inputs kwinputs cpu_memory_usage "
    "flops fwd_thread"
).split()

torch.manual_seed(0)
torch.set_num_threads(1)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(WIDTH, 32), torch.nn.GELU(), torch.nn.Linear(32, WIDTH))

    def forward(self, x):
        y = self.norm(x)
        with record_function("attend", f"{len(x)} rows"):
            x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + torch.nn.functional.dropout(self.mlp(x), 0.1)


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList([Block() for _ in range(2)])
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def recording(kind, folder):
    """The profiler that is asked for: of the steps after ``WAIT`` and ``WARMUP`` it records one."""
    options = dict.fromkeys(OPTIONS, True)
    if kind == "stepscope":
        from stepscope.profiler import ProfilerActivity, profile, schedule

        options["run"] = f"{folder}/run"
    else:
        from torch.profiler import ProfilerActivity, profile, schedule
    planned = schedule(wait=WAIT, warmup=WARMUP, active=1, repeat=1)
    return profile(activities=[ProfilerActivity.CPU], schedule=planned, **options)


def train(after_step):
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    words = torch.randint(0, WORDS, (8 * (WAIT + WARMUP + 2), 12))
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(words), batch_size=8, shuffle=True)
    for (tokens,) in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        after_step()
    print(loss.item())


def said(event):
    """What an event says, and what is around it: the operator or label that it lies in, and Python's calls."""
    around = list(ancestors(event))
    parents = [other.name for other in around if not other.is_python_function]
    calls = [other.name for other in around if other.is_python_function]
    values = {name: getattr(event, name) for name in SAID}
    return {**values, "parent": parents[0] if parents else None, "calls": calls}


def ancestors(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event


def flat(nodes):
    """All events of torch.profiler's tree."""
    for node in nodes:
        yield node
        yield from flat(node.children)


def allocations(prof):
    """Bytes of every allocation and free, in order of time, as torch.profiler's tree has them."""
    results = prof.profiler.kineto_results
    if results is None:
        return None
    tag = torch._C._profiler._EventType.Allocation
    nodes = [node for node in flat(results.experimental_event_tree()) if node.tag == tag]
    return [node.typed[1].alloc_size for node in sorted(nodes, key=lambda node: node.start_time_ns)]


def main(kind, folder):
    if kind == "nothing":
        train(lambda: None)
        return
    with recording(kind, folder) as prof:
        train(prof.step)
    prof.export_chrome_trace(f"{folder}/{kind}-trace.json")
    with open(f"{folder}/{kind}.json", "w", encoding="utf-8") as file:
        events = [said(event) for event in prof.events() if not event.is_python_function]
        json.dump({"events": events, "allocations": allocations(prof)}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
