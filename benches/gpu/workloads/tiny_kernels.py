"""20,000 kernels in a row that do next to nothing: what recording one costs."""

from contextlib import contextmanager

STEPS = 1
EXPECTED = ("ops", "kernels", "durations", "launch shapes", "launching ops", "streams", "calls", "clock")
KERNELS = 20_000


@contextmanager
def ready(torch, device):
    x, one = torch.zeros(1, device=device), torch.ones(1, device=device)

    def step():
        for _ in range(KERNELS):
            x.add_(one)

    yield step
