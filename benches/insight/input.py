"""Faults of the input: batches come too late."""

import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

from .models import perceptron, train
from .planted import fault


class Samples(Dataset):
    """Samples that `read` makes from their number."""

    def __init__(self, count, width, read):
        self.count, self.width, self.read = count, width, read

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        inputs = torch.full((self.width,), float(index % 7))
        self.read(index)
        return inputs, index % 10


def learner(width):
    model = perceptron(width, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.001)


@fault("input.main_process", anywhere=True)
def no_workers(job):
    """The training process waits for a slow store itself, sample by sample."""
    width, latency_s = job.draw.choice([384, 512]), job.draw.uniform(0.001, 0.002)
    data = Samples(16 * job.count, width, lambda index: time.sleep(latency_s))
    workers = {"num_workers": 2, "prefetch_factor": 4} if job.fixed else {"num_workers": 0}
    model, optimizer = learner(width)
    for batch in job.steps(DataLoader(data, batch_size=16, **workers)):
        train(model, optimizer, batch)


@fault("input.few_workers", anywhere=True)
def few_workers(job):
    """One worker waits for a slow store; several would be enough."""
    width, latency_s = job.draw.choice([256, 384]), job.draw.uniform(0.002, 0.004)
    data = Samples(16 * job.count, width, lambda index: time.sleep(latency_s))
    model, optimizer = learner(width)
    workers = 6 if job.fixed else 1
    for batch in job.steps(DataLoader(data, batch_size=16, num_workers=workers)):
        train(model, optimizer, batch)


@fault("input.main_process", "host.python", names=("augment",))
def slow_transform(job):
    """Each sample is changed by Python, pixel by pixel."""
    width, pixels = job.draw.choice([256, 384]), job.draw.randrange(6000, 9000)
    picture = list(range(pixels))

    def augment(index):
        if job.fixed:
            return torch.arange(pixels).mul(3).add(index).remainder(255)
        return [(pixel * 3 + index) % 255 for pixel in picture]  # planted

    model, optimizer = learner(width)
    for batch in job.steps(DataLoader(Samples(32 * job.count, width, augment), batch_size=32)):
        train(model, optimizer, batch)


@fault("io.small_requests", names=("samples.bin", "read_sample"))
def small_reads(job):
    """Samples are read from a file without a buffer, a few bytes at a time."""
    width, piece = job.draw.choice([256, 384]), job.draw.choice([16, 24, 32])
    size = 4 * 1024
    with open("samples.bin", "wb") as file:
        file.write(bytes(64 * size))

    def read_sample(index):
        with open("samples.bin", "rb", buffering=0) as file:
            file.seek(index % 64 * size)
            if job.fixed:
                return file.read(size)
            return b"".join(file.read(piece) for _ in range(size // piece))  # planted

    model, optimizer = learner(width)
    for batch in job.steps(DataLoader(Samples(32 * job.count, width, read_sample), batch_size=32)):
        train(model, optimizer, batch)
    os.remove("samples.bin")


@fault("io.open_storm", "io.metadata", names=("index.txt", "label_of"))
def open_storm(job):
    """The file of labels is opened for each field of each sample."""
    width, fields = job.draw.choice([256, 384]), job.draw.randrange(10, 16)
    with open("index.txt", "w") as file:
        file.write("cat\n" * fields)

    def label_of(field):
        with open("index.txt") as file:  # planted
            return file.readlines()[field]  # planted

    kept = [label_of(field) for field in range(fields)]

    def read(index):
        return [kept[field] if job.fixed else label_of(field) for field in range(fields)]  # planted

    model, optimizer = learner(width)
    for batch in job.steps(DataLoader(Samples(32 * job.count, width, read), batch_size=32)):
        train(model, optimizer, batch)


@fault("input.restarted_workers", anywhere=True, step_time="mean")
def workers_recreated(job):
    """Epochs are short, and each starts its workers anew."""
    width, of_epoch = job.draw.choice([384, 512]), job.draw.choice([4, 5, 6])
    data = Samples(8 * of_epoch, width, lambda index: None)
    loader = DataLoader(data, batch_size=8, num_workers=2, persistent_workers=job.fixed)
    model, optimizer = learner(width)

    def batches():
        while True:
            yield from loader

    for batch in job.steps(batches()):
        train(model, optimizer, batch)
