"""A training step of the example's GPT: embeddings, attention, AdamW."""

import importlib.util
from contextlib import contextmanager
from pathlib import Path

from gpu.workloads import Unavailable

STEPS = 5
EXPECTED = (
    "ops",
    "kernels",
    "durations",
    "launch shapes",
    "occupancy",
    "launching ops",
    "streams",
    "calls",
    "clock",
    "devices",
)


@contextmanager
def ready(torch, device):
    path = Path(__file__).resolve().parents[3] / "examples" / "gpt" / "train.py"
    if not path.exists():
        raise Unavailable("examples/gpt/train.py was not carried along")
    spec = importlib.util.spec_from_file_location("gpt_train", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    torch.manual_seed(0)
    model = example.GPT(window=64, width=128, heads=4, layers=4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text = torch.randint(example.BYTES, (8, 64), device=device)

    def step():
        scores = model(text)
        loss = torch.nn.functional.cross_entropy(scores.view(-1, example.BYTES), text.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    yield step
