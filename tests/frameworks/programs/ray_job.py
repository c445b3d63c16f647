"""Trains on two workers of a cluster of Ray that is there already, twice, and prints the error of the second time.

First, nothing of the driver records, and optimizers make five steps. Then a profiler of the driver does; the program says
where three steps end, and rank 0 raises an error, while rank 1 runs operators until it is ended.
"""

import os
import time

import ray
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from stepscope.profiler import profile


def train(how):
    import stepscope

    model = prepare_model(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(how["steps"]):
        with torch.profiler.record_function("in the training function"):
            torch.erfinv(torch.zeros(4))
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        if how["fails"]:
            stepscope.step_end()
    ray.train.report({})
    if how["fails"] and ray.train.get_context().get_world_rank() == 0:
        raise ValueError("on purpose")
    while how["fails"]:
        torch.digamma(torch.ones(4))
        time.sleep(0.01)


def fit(**how):
    TorchTrainer(
        train,
        train_loop_config=how,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=os.path.abspath("results")),
    ).fit()


if __name__ == "__main__":
    ray.init(log_to_driver=False)
    fit(steps=5, fails=False)
    try:
        with profile(run="run"):
            fit(steps=3, fails=True)
    except ray.train.WorkerGroupError as error:
        print(error.worker_failures[0])
