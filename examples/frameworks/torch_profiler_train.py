"""A loop that calls PyTorch's own profiler:
``stepscope record --as-torch-profiler -- python examples/frameworks/torch_profiler_train.py``.

It gets Stepscope's in its place. The traces and the table that it asks for are as before, and the run has the whole job, with
the six steps that the schedule asks for.
"""

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=2, warmup=1, active=3, repeat=2),
        on_trace_ready=tensorboard_trace_handler("traces"),
        record_shapes=True,
    ) as prof:
        for _ in range(20):
            inputs = torch.randn(16, 64)
            with record_function("forward"):
                loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5))
