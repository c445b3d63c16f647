"""Faults of the host's own code: what the training thread does between operators, or waits for."""

import gc
import json
import os
import subprocess
import threading
import time

import torch

from .models import perceptron, samples, train
from .planted import fault


@fault("host.gc")
def gc_every_step(job):
    """The collector is called in each step, and looks at an index of many objects."""
    index = [[number] for number in range(job.draw.randrange(60_000, 120_000))]
    width = job.draw.choice([384, 512, 640])
    model, batch = perceptron(width, 3), samples(128, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in job.steps():
        train(model, optimizer, batch)
        if not job.fixed:
            gc.collect()  # planted
    assert index


@fault("host.python", names=("matches",))
def python_loop(job):
    """A metric is counted by Python, element by element."""
    width, count = job.draw.choice([384, 512]), job.draw.randrange(300_000, 500_000)
    model, batch = perceptron(width, 3), samples(192, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens, wanted = torch.randint(50, (count,)), torch.randint(50, (count,))
    token_list, wanted_list = tokens.tolist(), wanted.tolist()

    def matches():
        hits = 0
        for token, want in zip(token_list, wanted_list):  # planted
            if token == want:  # planted
                hits += 1  # planted
        return hits

    for _ in job.steps():
        train(model, optimizer, batch)
        hits = int((tokens == wanted).sum()) if job.fixed else matches()  # planted
        assert hits > 0


@fault("host.tiny_operators")
def tiny_operators(job):
    """A weighted sum is computed element by element with operators."""
    width, count = job.draw.choice([384, 448, 512]), job.draw.randrange(1200, 1800)
    model, batch = perceptron(width, 3), samples(256, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    weights, values = torch.rand(count), torch.rand(count)
    for _ in job.steps():
        train(model, optimizer, batch)
        if job.fixed:
            total = (weights * values).sum()
        else:
            total = torch.zeros(())
            for index in range(count):  # planted
                total = total + weights[index] * values[index]  # planted
        assert total.shape == ()


@fault("optimizer.for_loop", names=("Adam", "optimizer.step"))
def optimizer_for_loop(job):
    """Adam updates each of many small parameters by itself."""
    width, depth = job.draw.choice([24, 32, 48]), job.draw.randrange(90, 130)
    model, batch = perceptron(width, depth), samples(16, width)
    # `fused=True` is faster still, but where threads sleep while they wait, as here.
    how = {"foreach": job.fixed}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, **how)  # planted
    for _ in job.steps():
        train(model, optimizer, batch)


@fault("io.checkpoints", "io.blocking_checkpoint", names=("checkpoint.pt", "torch.save"))
def checkpoint_every_step(job):
    """The model is saved and flushed to the disk in each step."""
    width = job.draw.choice([768, 896, 1024])
    model, batch = perceptron(width, 4), samples(48, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in job.steps():
        train(model, optimizer, batch)
        if not job.fixed or step == job.count - 1:
            with open("checkpoint.pt", "wb") as file:
                torch.save(model.state_dict(), file)  # planted
                os.fsync(file.fileno())  # planted


@fault("io.small_requests", "io.exposed", "host.python", names=("train.log",))
def log_every_value(job):
    """Each step writes thousands of lines, each by itself."""
    width, lines = job.draw.choice([320, 384, 448]), job.draw.randrange(2500, 4000)
    model, batch = perceptron(width, 2), samples(128, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with open("train.log", "w") as log:
        for step in job.steps():
            train(model, optimizer, batch)
            values = model[0].weight.flatten()[:lines].tolist()
            if job.fixed:
                log.write(f"{step} {sum(values)}\n")
                continue
            for value in values:  # planted
                log.write(f"{step} {value}\n")  # planted
                log.flush()  # planted


@fault("debug.anomaly_mode", anywhere=True)
def anomaly_mode(job):
    """The search for the operator that made a NaN is left on."""
    torch.autograd.set_detect_anomaly(not job.fixed)
    width, depth = job.draw.choice([48, 64, 96]), job.draw.randrange(40, 60)
    model, batch = perceptron(width, depth), samples(64, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in job.steps():
        train(model, optimizer, batch)


@fault("host.gil_wait", names=("count_words",))
def gil_hog(job):
    """A thread beside the training runs Python all the time."""
    width, depth = job.draw.choice([32, 48, 64]), job.draw.randrange(12, 20)
    model, batch = perceptron(width, depth), samples(32, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    ends = threading.Event()

    def count_words():
        words = {}
        while not ends.is_set():
            for number in range(5000):  # planted
                words[number % 97] = words.get(number % 97, 0) + 1  # planted

    thread = threading.Thread(target=count_words, name="count_words")
    if not job.fixed:
        thread.start()
    for _ in job.steps():
        train(model, optimizer, batch)
    ends.set()
    if not job.fixed:
        thread.join()


@fault("host.lock_wait")
def lock_held(job):
    """Each step takes a lock that another thread holds for most of the time."""
    width, held_s = job.draw.choice([384, 512]), job.draw.uniform(0.02, 0.04)
    model, batch = perceptron(width, 3), samples(128, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lock, ends, wanted, taken = threading.Lock(), threading.Event(), threading.Event(), threading.Event()

    def upload():
        while not ends.is_set():
            wanted.wait(1)
            wanted.clear()
            with lock:
                taken.set()
                time.sleep(held_s / 100 if job.fixed else held_s)

    thread = threading.Thread(target=upload, name="upload")
    thread.start()
    for _ in job.steps():
        train(model, optimizer, batch)
        taken.clear()
        wanted.set()
        taken.wait(1)
        with lock:  # planted
            pass
    ends.set()
    wanted.set()
    thread.join()


@fault("host.sleep")
def sleep_in_step(job):
    """A pause that was put in to wait for something else was forgotten."""
    width, pause_s = job.draw.choice([384, 512, 640]), job.draw.uniform(0.015, 0.03)
    model, batch = perceptron(width, 3), samples(128, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in job.steps():
        train(model, optimizer, batch)
        if not job.fixed:
            time.sleep(pause_s)  # planted


@fault("host.python", names=("state_line",))
def state_written_as_json(job):
    """Each step writes what it knows as JSON: a library runs, and the program has the line that calls it."""
    width, count = job.draw.choice([192, 256]), job.draw.randrange(20_000, 40_000)
    model, batch = perceptron(width, 3), samples(64, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def state_line(step):
        values = model[0].weight.flatten().repeat(2)[:count].tolist()
        return json.dumps({"step": step, "values": values})  # planted

    for step in job.steps():
        train(model, optimizer, batch)
        if not job.fixed:
            assert state_line(step)


@fault("host.gil_wait", "host.cpu_contention", names=("watch",))
def polling_thread(job):
    """A thread asks all the time whether there is something to do, and does not sleep."""
    width, depth = job.draw.choice([64, 96, 128]), job.draw.randrange(4, 10)
    model, batch = perceptron(width, depth), samples(64, width)
    optimizer = torch.optim.Adam(model.parameters())
    ends, asked = threading.Event(), []

    def watch():
        while not ends.is_set():  # planted
            if asked:  # planted
                asked.clear()
            if job.fixed:
                time.sleep(0.05)

    thread = threading.Thread(target=watch, name="watch")
    thread.start()
    for _ in job.steps():
        train(model, optimizer, batch)
    ends.set()
    thread.join()


@fault("host.outside_wait", names=("load_of_machine",), steps=300)
def program_every_step(job):
    """Each step starts a program and waits for what it prints."""
    width = job.draw.choice([192, 256, 320])
    model, batch = perceptron(width, 3), samples(64, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def load_of_machine():
        command = ["sh", "-c", "cat /proc/loadavg | cut -d' ' -f1"]
        return float(subprocess.check_output(command))  # planted

    for _ in job.steps():
        train(model, optimizer, batch)
        load = os.getloadavg()[0] if job.fixed else load_of_machine()
        assert load >= 0
