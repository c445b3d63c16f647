"""Runs one job: ``job.py NAME --seed 1 --steps 40 [--fixed] [--ranks 2] --times FILE``.

With several ranks this process starts them, and does not import PyTorch itself. The first rank writes the ns of its steps
into a file, as JSON.
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

# A rank that waits for one that does not come gives up after this.
COLLECTIVE_TIMEOUT_S = 6
# Steps that warm up.
WARMUP = 3
# All ranks together have this long.
JOB_TIMEOUT_S = 240


class Job:
    """What a job knows about itself."""

    def __init__(self, seed, steps, fixed=False, ranks=1):
        self.fixed = fixed
        self.rank = int(os.environ.get("RANK", 0))
        self.ranks = ranks
        self.count = steps
        # Sizes are drawn from it: a rule that fits one size does not fit the others. The same on all ranks.
        self.draw = random.Random(seed)
        self.step_ns = []

    def steps(self, batches=None):
        """The numbers of the steps, or what `batches` gives for each, which it must do as often as there are steps."""
        batches = iter(range(self.count) if batches is None else batches)
        for number in range(self.count):
            begin_ns = time.perf_counter_ns()
            yield next(batches)
            if number + 1 in (WARMUP, self.count):
                wait_for_device()
            self.step_ns.append(time.perf_counter_ns() - begin_ns)


def wait_for_device():
    """A GPU works beside the host: what was enqueued belongs to the steps that did so."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--times", default=os.devnull)
    parser.add_argument("--trace", type=Path, help="where a simulated job writes what happened")
    arguments = parser.parse_args()
    if arguments.ranks > 1 and "RANK" not in os.environ:
        sys.exit(start_ranks(arguments.ranks))
    run(arguments)


def start_ranks(count):
    """Starts this program once for each rank; returns the exit code of the one that failed first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    shared["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // count))
    environments = [{**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=environment) for environment in environments]
    deadline = time.monotonic() + JOB_TIMEOUT_S
    while any(rank.poll() is None for rank in ranks) and not any(rank.poll() for rank in ranks):
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    for rank in ranks:
        try:
            rank.wait(timeout=3)
        except subprocess.TimeoutExpired:
            rank.terminate()
            try:
                rank.wait(timeout=5)
            except subprocess.TimeoutExpired:
                rank.kill()
                rank.wait()
    return next((rank.returncode for rank in ranks if rank.returncode), 0)


def run(arguments):
    """Runs the job in this process."""
    # The jobs are imported as a package, not by their bare names.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    import torch

    from insight.planted import all_planted

    planted = all_planted()[arguments.name]
    if planted.is_simulated:
        machine = simulated(planted, arguments.seed, arguments.fixed)
        if arguments.trace:
            machine.save(arguments.trace)
        Path(arguments.times).write_text(json.dumps(machine.steps))
        return
    job = Job(arguments.seed, arguments.steps, arguments.fixed, arguments.ranks)
    torch.manual_seed(arguments.seed)
    if job.ranks > 1:
        in_group(job, planted)
    else:
        planted.run(job)
    if job.rank == 0:
        Path(arguments.times).write_text(json.dumps(job.step_ns))


def simulated(planted, seed, fixed=False):
    """The machine on which a simulated job has run."""
    from insight.machine import Machine

    machine = Machine(seed)
    planted.run(machine, Job(seed, planted.steps, fixed))
    return machine


def in_group(job, planted):
    """Runs the job as one rank of a process group. Gloo may abort in a rank whose peer has left: they leave together."""
    import datetime

    from torch import distributed

    distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
    distributed.barrier()
    if planted.fails:
        distributed.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=COLLECTIVE_TIMEOUT_S))
    planted.run(job)
    store = distributed.distributed_c10d._get_default_store()
    if store.add("ranks at the end", 1) == job.ranks:
        store.set("all are at the end", "yes")
    store.wait(["all are at the end"])
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
