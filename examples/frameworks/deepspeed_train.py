"""ZeRO 1 on the CPU: ``stepscope record -- torchrun --nproc-per-node 2 examples/frameworks/deepspeed_train.py``.

Nothing in it is about profiling. Two batches make a step: the report has the steps that the engine counts, and its phases in
its own words, ``fwd``, ``bwd``, ``bwd_allreduce`` and ``step``.
"""

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("LOCAL_SIZE", os.environ.get("LOCAL_WORLD_SIZE", "1"))
import deepspeed
import torch

# Collectives in shared memory: else they are compiled first.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
    config = {
        "train_micro_batch_size_per_gpu": 16,
        "gradient_accumulation_steps": 2,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    for _ in range(20):
        inputs = torch.randn(16, 64)
        loss = (engine(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        engine.backward(loss)
        engine.step()
    torch.distributed.destroy_process_group()
