"""A run beside a training in ClearML, offline: ``python examples/trackers/clearml_log.py``.

The report, the trace and the numbers are artifacts of the task; the numbers are its single values, too. Without
``set_offline`` they are sent at once; ``Task.import_offline_session`` sends them later.
"""

import stepscope
import torch
from clearml import Task
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
        Task.current_task().get_logger().report_scalar("loss", "train", loss.item(), prof.step_num)
        prof.step()


if __name__ == "__main__":
    Task.set_offline(True)
    task = Task.init(project_name="stepscope-example", task_name="train", auto_connect_frameworks=False)
    with profile(schedule=schedule(wait=1, warmup=1, active=8)) as prof:
        train(prof)
    print("logged to", stepscope.log_to(prof))
    task.close()
