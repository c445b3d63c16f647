"""Jobs of four threads and two workers, each killed with kill -9 at a random moment.

PyTorch is imported once; each job is a fork that records itself. Usage: killed_families.py FOLDER FIRST_SEED JOBS
Makes FOLDER/SEED/run, and FOLDER/SEED/counters: the ops that each thread and each worker had finished.
"""

import mmap
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings

import torch
from stepscope.profiler import profile, record_function

THREADS, WORKERS, OPS_PER_BATCH = 4, 2, 20


def work(counters, slot):
    values = torch.rand(64)
    # One store each: `struct.pack_into` would write a zero first, and the kill may come between.
    finished = memoryview(counters).cast("q")
    while True:
        with record_function("batch"):
            for _ in range(OPS_PER_BATCH):
                torch.erfinv(values)
                finished[slot] += 1


def job(run, counters):
    os.setsid()
    torch.set_num_threads(1)
    prof = profile(run=run, record_shapes=True, profile_memory=True, with_stack=True)
    prof.start()
    # The threads go on when this returns, and so does the recording.
    kept.append(prof)
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=work, args=(counters, THREADS + worker), name=f"worker {worker}")
        for worker in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for thread in range(THREADS):
        threading.Thread(target=work, args=(counters, thread), name=f"trainer {thread}").start()


def main():
    folder, first, jobs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for seed in range(first, first + jobs):
        moment = random.Random(seed)
        here = os.path.join(folder, str(seed))
        os.makedirs(here)
        with open(os.path.join(here, "counters"), "w+b") as file:
            file.truncate(8 * (THREADS + WORKERS))
            counters = mmap.mmap(file.fileno(), 0)
        pid = os.fork()
        if pid == 0:
            job(os.path.join(here, "run"), counters)
            return
        while min(memoryview(counters).cast("q")) == 0:
            time.sleep(0.001)
        time.sleep(moment.uniform(0, 0.03))
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


kept = []
warnings.simplefilter("ignore")
main()
