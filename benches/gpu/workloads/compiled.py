"""A training step of a model that torch.compile has compiled, with kernels of Triton."""

from contextlib import contextmanager

from gpu.workloads import Unavailable

STEPS = 5
EXPECTED = ("ops", "kernels", "durations", "launch shapes", "occupancy", "launching ops", "streams", "calls", "clock")


@contextmanager
def ready(torch, device):
    if device == "cuda":
        from torch.utils._triton import has_triton

        if not has_triton():
            raise Unavailable("Triton is not installed, or does not know this GPU")
    torch.manual_seed(0)
    nn = torch.nn
    layers = [nn.Linear(128, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 128)]
    model = nn.Sequential(*layers).to(device)
    compiled = torch.compile(model)
    x = torch.randn(64, 128, device=device)

    def step():
        compiled(x).square().mean().backward()
        model.zero_grad()

    yield step
