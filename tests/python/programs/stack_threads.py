"""Threads that began before recording does, and one that begins and ends while it runs; each runs an operator.

Usage: stack_threads.py RUN
"""

import sys
import threading

import torch
from stepscope.profiler import profile

x = torch.ones(2)
is_recording = threading.Event()
is_done = threading.Event()
has_run = threading.Event()


def loop():
    is_recording.wait()
    x.erf()


def waiting():
    loop()


def busy():
    """Calls no function between the begin of recording and its operator."""
    while not has_run.is_set():
        if is_recording.is_set():
            torch.erfinv(x)
            has_run.set()
    is_done.wait()


def new():
    short()


def short():
    x.erfc()


before = [threading.Thread(target=target) for target in (waiting, busy)]
for thread in before:
    thread.start()
with profile(run=sys.argv[1], with_stack=True):
    is_recording.set()
    later = threading.Thread(target=new)
    later.start()
    later.join()
    before[0].join()
    has_run.wait()
is_done.set()
before[1].join()
