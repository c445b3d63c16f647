"""NCCL in a group of one: all-reduce and all-gather."""

import tempfile
from contextlib import contextmanager

from gpu.workloads import Unavailable

STEPS = 5
EXPECTED = ("ops", "durations", "launching ops", "streams", "calls", "collectives", "clock")


@contextmanager
def ready(torch, device):
    if device != "cuda":
        raise Unavailable("NCCL needs a GPU")
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_nccl_available():
        raise Unavailable("this PyTorch has no NCCL")
    with tempfile.NamedTemporaryFile() as store:
        distributed.init_process_group("nccl", init_method=f"file://{store.name}-store", rank=0, world_size=1)
        numbers = torch.ones(1 << 16, device=device)
        gathered = torch.empty(1 << 16, device=device)

        def step():
            distributed.all_reduce(numbers)
            distributed.all_gather_into_tensor(gathered, numbers)

        try:
            yield step
        finally:
            distributed.destroy_process_group()
