"""A run beside a training in W&B, offline: ``python examples/trackers/wandb_log.py``.

The report is a page of W&B's run, the trace an artifact that its page of profiles shows, and the numbers are in its summary.
``wandb sync`` sends them later; without ``mode`` they are sent at once.
"""

import stepscope
import torch
import wandb
from stepscope.profiler import profile, schedule


def train(prof):
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(12):
        inputs = torch.randn(64, 32)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        wandb.log({"loss": loss.item()})
        prof.step()


if __name__ == "__main__":
    with wandb.init(project="stepscope-example", mode="offline"):
        with profile(schedule=schedule(wait=1, warmup=1, active=8)) as prof:
            train(prof)
        print("logged to", stepscope.log_to(prof))
