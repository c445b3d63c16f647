"""Trains a small model, and runs one op on a thread."""

import threading

import torch

STEPS = 5


def train():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(4, 8, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.LayerNorm(48), torch.nn.Linear(48, 3)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for _ in range(STEPS):
        x, y = torch.randn(2, 4, 8), torch.randint(0, 3, (2,))
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def on_a_thread():
    thread = threading.Thread(target=torch.erfinv, args=(torch.zeros(4),), name="thread")
    thread.start()
    thread.join()


if __name__ == "__main__":
    train()
    on_a_thread()
