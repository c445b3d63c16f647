"""Jobs with two faults at once: both have to be said, each with its own time."""

import gc
import time

import torch
from torch.utils.data import DataLoader

from .device_model import Model
from .input import Samples, learner
from .machine import COMMUNICATION_STREAM, STREAM
from .models import perceptron, samples, train
from .planted import compound


@compound((("host.gc",), ()), (("host.python",), ("count_words",)))
def collections_and_python(job):
    """Each step collects garbage, and counts words in Python."""
    index = [[number] for number in range(job.draw.randrange(30_000, 50_000))]
    words = [f"word {number % 97}" for number in range(job.draw.randrange(600_000, 900_000))]
    model, batch = perceptron(256, 3), samples(96, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def count_words():
        counts = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        return counts

    for _ in job.steps():
        train(model, optimizer, batch)
        gc.collect()
        count_words()
    assert index


@compound((("optimizer.for_loop",), ()), (("host.sleep",), ("wait_for_metrics",)))
def optimizer_and_sleep(job):
    """The optimizer goes through many small parameters, and each step sleeps."""
    depth, pause_s = job.draw.randrange(90, 130), job.draw.uniform(0.01, 0.02)
    model, batch = perceptron(32, depth), samples(16, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, foreach=False)

    def wait_for_metrics():
        time.sleep(pause_s)

    for _ in job.steps():
        train(model, optimizer, batch)
        wait_for_metrics()


@compound((("input.main_process",), ()), (("compute.double_precision",), ()))
def input_and_double_precision(job):
    """Batches are made by the training process from a slow store, and everything is float64."""
    width, latency_s = job.draw.choice([640, 768]), job.draw.uniform(0.0005, 0.001)
    data = Samples(16 * job.count, width, lambda index: time.sleep(latency_s))
    model, optimizer = learner(width)
    model.double()
    for inputs, targets in job.steps(DataLoader(data, batch_size=16)):
        train(model, optimizer, (inputs.double().repeat(8, 1), targets.repeat(8)))


@compound((("io.checkpoints", "io.blocking_checkpoint"), ()), (("host.tiny_operators",), ()))
def checkpoints_and_tiny_operators(job):
    """Each step saves the model, and sums up in a loop over elements."""
    width, count = job.draw.choice([512, 640]), job.draw.randrange(400, 700)
    model, batch = perceptron(width, 3), samples(48, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    values = torch.randn(count)
    for _ in job.steps():
        train(model, optimizer, batch)
        total = torch.zeros(())
        for index in range(count):
            total = total + values[index] * values[index]
        torch.save(model.state_dict(), "checkpoint.pt")


@compound((("host.sync",), ()), (("copy.pageable",), ()), steps=24, is_simulated=True)
def item_and_pageable_copies(machine, job):
    """Each layer reads a value, and batches are not pinned."""
    model, size = Model(machine, job, rows=512), job.draw.choice([8, 12, 16]) << 20

    def check():
        with machine.op("aten::item"), machine.op("aten::_local_scalar_dense"):
            machine.copy(1, to_device=False, is_pinned=True)
            machine.wait()

    for _ in model.steps():
        with machine.op("aten::copy_"):
            machine.copy(size, to_device=True, is_pinned=False)
        model.train(check)


@compound((("comm.overlap", "comm.exposed"), ()), (("compute.few_blocks",), ()), steps=24, is_simulated=True)
def late_all_reduce_and_few_blocks(machine, job):
    """Gradients are averaged when the backward pass has ended, and kernels fill a part of the device."""
    model, ns = Model(machine, job), job.draw.randrange(250_000, 400_000)
    model.blocks = job.draw.randrange(30, 50)
    model.slower = 108 / model.blocks
    for _ in model.steps():
        model.forward()
        model.backward()
        for _ in range(2 * model.layers):
            model.averaging(ns)(machine.free[STREAM])
        machine.after(STREAM, machine.free[COMMUNICATION_STREAM])
        model.optimize()
