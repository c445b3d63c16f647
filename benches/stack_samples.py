"""What samples of Python stacks cost: the processor time of the recorder's own threads, with them and without.

Run by ``python benches/stack_samples.py`` in an environment with Stepscope and PyTorch. Each round records each job twice, in
turn. A job warms up, and then reads for some seconds how long the recorder's threads were on a processor, as the system counts it.
"""

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

#: What the recorder calls its threads.
THREADS = "stepscope"
#: By name: threads of Python beside the one that trains, and how deep their calls are.
JOBS = {"a training": (0, 0), "and calls 200 deep": (0, 200), "and 8 threads": (8, 20), "and 64 threads": (64, 20)}
WAYS = {"with": [], "without": ["--no-stack-samples"]}
WARM_UP_S = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        job(*JOBS[arguments.job], arguments.seconds)
        return
    print(f"{'% of a processor':20} {'with':>7} {'without':>8} {'samples':>8}")
    for name in JOBS:
        shares = {way: [] for way in WAYS}
        for _ in range(arguments.rounds):
            for way, options in WAYS.items():
                shares[way].append(share(name, options, arguments.seconds))
        with_them, without = (100 * statistics.median(shares[way]) for way in WAYS)
        print(f"{name:20} {with_them:7.3f} {without:8.3f} {with_them - without:8.3f}", flush=True)
    print(f"{platform.processor() or platform.machine()}, Linux {platform.release()}")


def share(name, options, seconds):
    """How much of a processor the recorder's threads have taken."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            Path(sys.executable).with_name("stepscope"),
            "record",
            *options,
            "--output",
            Path(folder) / "run",
            "--",
        ]
        command += [sys.executable, __file__, "--job", name, "--seconds", seconds]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[0])


def job(threads, depth, seconds):
    import torch

    torch.set_num_threads(1)
    for _ in range(threads):
        threading.Thread(target=deep, args=(depth, rest), daemon=True).start()
    model = torch.nn.Sequential(*(layer for _ in range(8) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(64, 256)

    def train(until):
        while time.monotonic() < until:
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()

    def measure():
        train(time.monotonic() + WARM_UP_S)
        before, began = on_processor_ns(), time.monotonic_ns()
        train(time.monotonic() + seconds)
        print((on_processor_ns() - before) / (time.monotonic_ns() - began))

    deep(0 if threads else depth, measure)


def deep(depth, call):
    return deep(depth - 1, call) if depth else call()


def rest():
    while True:
        time.sleep(0.01)


def on_processor_ns():
    """How long the recorder's threads were on a processor."""
    own = (task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text().strip() == THREADS)
    return sum(int((task / "schedstat").read_text().split()[0]) for task in own)


if __name__ == "__main__":
    main()
