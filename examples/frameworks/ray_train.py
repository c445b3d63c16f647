"""Two workers of Ray Train on the CPU: ``stepscope record -- python examples/frameworks/ray_train.py``.

Nothing in it is about profiling. Each worker is a rank of the run, and what runs on the thread of its training function is
recorded.
"""

import tempfile

import ray
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model


def train():
    model = prepare_model(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(10):
        inputs = torch.randn(16, 64)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ray.train.report({"loss": loss.item()})


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False)
    with tempfile.TemporaryDirectory() as folder:
        results = RunConfig(storage_path=folder)
        TorchTrainer(train, scaling_config=ScalingConfig(num_workers=2), run_config=results).fit()
