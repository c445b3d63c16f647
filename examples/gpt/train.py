"""Train a small GPT, byte by byte, on the text of this repository.

An ordinary training script: a model, a dataset read by worker processes, an optimizer, a loop with a few labels for a
profiler. It knows nothing of Stepscope.

    python examples/gpt/train.py --steps 30
"""

import argparse
import math
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

BYTES = 256


class Text(Dataset):
    """Windows at random places: each item is a window of text and the same window one byte later."""

    def __init__(self, text, window, items):
        self.text = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self.window = window
        self.items = items

    def __len__(self):
        return self.items

    def __getitem__(self, index):
        start = torch.randint(len(self.text) - self.window, ()).item()
        window = self.text[start : start + self.window + 1].long()
        return window[:-1], window[1:]


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        batch, time_steps, width = x.shape
        split = self.queries_keys_values(x).view(batch, time_steps, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, time_steps, width))


class Block(nn.Module):
    """Attention, then a small network, each beside a shortcut."""

    def __init__(self, width, heads):
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.before_network = nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.network(self.before_network(x))


class GPT(nn.Module):
    """Predicts each next byte."""

    def __init__(self, window, width, heads, layers):
        super().__init__()
        self.bytes = nn.Embedding(BYTES, width)
        self.positions = nn.Embedding(window, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.scores = nn.Linear(width, BYTES)
        self.apply(self.start_small)

    @staticmethod
    def start_small(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device)
        return self.scores(self.last(self.blocks(self.bytes(x) + self.positions(positions))))


def read_repository():
    """The documentation and sources of the repository that this file is in."""
    here = Path(__file__).resolve()
    root = next((folder for folder in here.parents if (folder / "Cargo.toml").is_file()), here.parent)
    folders = [root, *(root / name for name in ("crates", "docs", "examples", "python"))]
    names = {path for folder in folders[1:] for path in folder.rglob("*") if path.suffix in (".md", ".rs", ".py")}
    return b"\n".join(path.read_bytes() for path in sorted(names | set(root.glob("*.md"))))


def parse_arguments():
    parser = argparse.ArgumentParser(description="Train a small GPT on the text of this repository.")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--window", type=int, default=128, help="bytes that the model sees")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2, help="processes that prepare batches")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    device = torch.device(arguments.device)
    text = read_repository()
    data = Text(text, arguments.window, items=arguments.steps * arguments.batch)
    loader = DataLoader(data, arguments.batch, num_workers=arguments.workers, pin_memory=device.type == "cuda")
    model = GPT(arguments.window, arguments.width, arguments.heads, arguments.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters, {len(text):,} bytes of text, {device}", flush=True)

    start = time.perf_counter()
    for step, (inputs, targets) in enumerate(loader):
        with record_function("to device"):
            inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        with record_function("forward"):
            scores = model(inputs)
            loss = F.cross_entropy(scores.view(-1, BYTES), targets.view(-1))
        with record_function("backward"):
            optimizer.zero_grad()
            loss.backward()
        with record_function("optimizer"):
            optimizer.step()
        if step % 5 == 0 or step == arguments.steps - 1:
            rate = (step + 1) * inputs.numel() / (time.perf_counter() - start)
            bits = loss.item() / math.log(2)
            print(f"step {step:4}  loss {loss.item():.3f} ({bits:.2f} bits a byte)  {rate:,.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
