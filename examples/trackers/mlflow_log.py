"""A run beside a training in MLflow, in a database of SQLite: ``python examples/trackers/mlflow_log.py``.

The report, the trace and the numbers are artifacts of MLflow's run in the folder ``stepscope``; the numbers are metrics, too.
"""

import mlflow
import stepscope
import torch
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
        mlflow.log_metric("loss", loss.item())
        prof.step()


if __name__ == "__main__":
    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    mlflow.set_experiment("stepscope-example")
    with mlflow.start_run():
        with profile(schedule=schedule(wait=1, warmup=1, active=8)) as prof:
            train(prof)
        print("logged to", stepscope.log_to(prof))
