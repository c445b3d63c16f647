"""A small training job that starts every kind of thread and process; each place runs an op of its own.

thread: erfinv, forked workers: log1p, spawned worker: expm1, spawned process: digamma, another Python: lgamma.
"""

import multiprocessing
import subprocess
import sys
import threading

import torch
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

STEPS = 6


class Numbers(Dataset):
    def __init__(self, op):
        self.op = op

    def __len__(self):
        return 2 * STEPS

    def __getitem__(self, index):
        return getattr(torch, self.op)(torch.full((8,), float(index)))


def train(loader):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for batch in loader:
        with record_function("forward"):
            loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def crunch():
    for _ in range(5):
        torch.erfinv(torch.zeros(4))


def digamma(count):
    for _ in range(count):
        torch.digamma(torch.ones(4))


def main():
    thread = threading.Thread(target=crunch, name="cruncher")
    thread.start()
    thread.join()
    train(DataLoader(Numbers("log1p"), batch_size=2, num_workers=2))
    process = multiprocessing.get_context("spawn").Process(target=digamma, args=(3,), name="spawned")
    process.start()
    lgamma = "import torch\nfor _ in range(4): torch.lgamma(torch.ones(4))"
    other = subprocess.Popen([sys.executable, "-c", lgamma])
    spawning = DataLoader(Numbers("expm1"), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    assert len(list(spawning)) == STEPS // 2
    process.join()
    assert process.exitcode == 0 and other.wait() == 0
    print("done")


if __name__ == "__main__":
    main()
