"""Copies between host and device, pinned and pageable, copies on the device, and memory that is set."""

from contextlib import contextmanager

from gpu.workloads import Unavailable

STEPS = 5
EXPECTED = (
    "ops",
    "copies",
    "memsets",
    "durations",
    "copied bytes",
    "launching ops",
    "streams",
    "calls",
    "waits",
    "clock",
)
ELEMENTS = 1 << 20


@contextmanager
def ready(torch, device):
    if device != "cuda":
        raise Unavailable("copies need a GPU")
    pageable = torch.ones(ELEMENTS)
    pinned = torch.ones(ELEMENTS).pin_memory()
    on_device, other = torch.zeros(ELEMENTS, device=device), torch.zeros(ELEMENTS, device=device)

    def step():
        on_device.copy_(pinned, non_blocking=True)
        on_device.copy_(pageable)
        other.copy_(on_device)
        pinned.copy_(other, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        pageable.copy_(other)
        # Many blocks count in memory who is last, which is set to 0 before.
        other.sum()

    yield step
