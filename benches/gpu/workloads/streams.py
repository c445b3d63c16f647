"""Two streams that overlap, ordered by events."""

from contextlib import contextmanager

from gpu.workloads import Unavailable

STEPS = 5
EXPECTED = ("ops", "kernels", "durations", "launching ops", "streams", "calls", "waits", "clock")


@contextmanager
def ready(torch, device):
    if device != "cuda":
        raise Unavailable("streams need a GPU")
    torch.manual_seed(0)
    a, b = (torch.randn(512, 512, device=device) for _ in range(2))
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    is_half_done, is_done = torch.cuda.Event(), torch.cuda.Event()

    def step():
        first.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(first):
            product = a @ b
            is_half_done.record()
            product @ a
        with torch.cuda.stream(second):
            b @ b
            is_half_done.wait()
            product + 1
            is_done.record()
        torch.cuda.current_stream().wait_stream(first)
        is_done.synchronize()

    yield step
