"""The profiler for torchtune's recipes in a loop as theirs: ``python examples/frameworks/torchtune_train.py``.

In a recipe, a configuration names it: ``_component_: stepscope.torchtune.setup_profiler``. The run is
``profiler_output/stepscope``, with the two steps that the schedule asks for.
"""

import torch
from stepscope.torchtune import setup_profiler

if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = {"wait_steps": 2, "warmup_steps": 1, "active_steps": 2, "num_cycles": 1}
    profiler, config = setup_profiler(enabled=True, cuda=False, **schedule)
    profiler.start()
    for _ in range(8):
        inputs = torch.randn(16, 64)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
    profiler.stop()
    print(f"profiled {config.active_steps} steps into {config.output_dir}")
