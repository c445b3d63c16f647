"""A run beside a training in TensorBoard: ``python examples/trackers/tensorboard_log.py``.

``tensorboard --logdir logs`` shows its numbers as scalars and its report as a text. The report as a page and the trace lie
beside them, in ``logs/stepscope``.
"""

import stepscope
import torch
from stepscope.profiler import profile, schedule
from torch.utils.tensorboard import SummaryWriter


def train(prof, writer):
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(12):
        inputs = torch.randn(64, 32)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        writer.add_scalar("loss", loss.item(), prof.step_num)
        prof.step()


if __name__ == "__main__":
    with SummaryWriter("logs") as writer:
        with profile(schedule=schedule(wait=1, warmup=1, active=8)) as prof:
            train(prof, writer)
        print("logged to", stepscope.log_to(prof, writer))
