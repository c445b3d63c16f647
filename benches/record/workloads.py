"""What is recorded: each function makes a workload and says how many ops one run of it has."""

import importlib.util
from pathlib import Path

import torch


def hot_loop(ops=20_000):
    """One op on one element, again and again: nothing but dispatch."""
    a, one = torch.zeros(1), torch.ones(1)

    def run():
        for _ in range(ops):
            a.add_(one)

    return run, ops


def mlp_step():
    """A training step of three layers, so small that PyTorch's own overhead is most of it."""
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(32, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 1),
    ]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, wanted = torch.randn(16, 32), torch.randn(16, 1)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()

    return step, ops_of(step)


def gpt_step(window, width, heads, layers, batch):
    """A training step of the example's model."""
    path = Path(__file__).resolve().parents[2] / "examples" / "gpt" / "train.py"
    spec = importlib.util.spec_from_file_location("gpt_train", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    torch.manual_seed(0)
    model = example.GPT(window, width, heads, layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randint(example.BYTES, (batch, window))

    def step():
        scores = model(inputs)
        loss = torch.nn.functional.cross_entropy(scores.view(-1, example.BYTES), inputs.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, ops_of(step)


def small_gpt_step():
    """The example's model, so small that PyTorch's own overhead is most of it: the worst case of a real step."""
    return gpt_step(window=16, width=64, heads=4, layers=4, batch=8)


def example_gpt_step():
    """The example's model at the example's own size."""
    return gpt_step(window=128, width=192, heads=6, layers=4, batch=16)


def ops_of(run):
    """The ops of one run, counted with torch.profiler."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        run()
    return len(prof.profiler.kineto_results.events())
