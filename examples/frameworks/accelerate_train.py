"""A loop with accelerate's profiler:
``stepscope record --as-torch-profiler -- python examples/frameworks/accelerate_train.py``.

Two batches make a step, of which the profiler is told. ``Accelerator.profile`` gives Stepscope's: the trace that it writes,
``traces/profile_0.json``, is as before, and the run has the whole job, with the three steps that the schedule asks for.
"""

import torch
from accelerate import Accelerator, ProfileKwargs
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    cycle = {"wait": 1, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 0}
    handler = ProfileKwargs(activities=["cpu"], schedule_option=cycle, output_trace_dir="traces")
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, kwargs_handlers=[handler])
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(torch.randn(320, 64)), batch_size=16)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with accelerator.profile() as prof:
        for (inputs,) in loader:
            with accelerator.accumulate(model):
                loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                prof.step()
