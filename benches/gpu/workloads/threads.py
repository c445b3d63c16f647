"""Two threads that launch kernels at the same time, each on a stream of its own."""

import queue
import threading
from contextlib import contextmanager

STEPS = 5
EXPECTED = ("ops", "kernels", "durations", "launching ops", "streams", "calls", "clock")
# torch.profiler sees operators of other threads only when it is told to.
ALL_THREADS = True


@contextmanager
def ready(torch, device):
    torch.manual_seed(0)
    a = torch.randn(256, 256, device=device)
    wanted, done = queue.Queue(), queue.Queue()

    def work(stream, operation):
        for _ in range(4):
            if stream is None:
                operation()
                continue
            with torch.cuda.stream(stream):
                operation()

    streams = [torch.cuda.Stream() for _ in range(2)] if device == "cuda" else [None, None]

    def other_thread():
        while wanted.get():
            work(streams[1], lambda: a * 2)
            done.put(True)

    # One thread for all steps: it lives before recording begins.
    thread = threading.Thread(target=other_thread, daemon=True)
    thread.start()

    def step():
        wanted.put(True)
        work(streams[0], lambda: a @ a)
        done.get()

    try:
        yield step
    finally:
        wanted.put(False)
        thread.join()
