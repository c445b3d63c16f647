"""Trains with accelerate, two batches a step, and has its profiler write a trace per process into the folder ``traces``."""

import torch
from accelerate import Accelerator, ProfileKwargs

if __name__ == "__main__":
    handler = ProfileKwargs(activities=["cpu"], output_trace_dir="traces")
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, kwargs_handlers=[handler])
    model = torch.nn.Linear(8, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with accelerator.profile():
        for _ in range(8):
            with accelerator.accumulate(model):
                accelerator.backward(model(torch.ones(4, 8)).sum())
                optimizer.step()
                optimizer.zero_grad()
    accelerator.end_training()
