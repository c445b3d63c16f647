"""Trains with DeepSpeed's engine on the CPU, in two groups of parameters, and prints its own counts as JSON.

Arguments: stage of ZeRO, batches that make a step, batches, and more words: ``overflow`` has all but the last steps
overflow, ``plain`` calls ``loss.backward()``, ``critic`` trains a second engine in each turn of the loop, ``disturbed`` has
DeepSpeed measure by itself, ``tutorial`` profiles as DeepSpeed's page on PyTorch's profiler does, ``pipeline`` trains an engine that runs whole batches.
"""

import json
import os
import sys

import torch

os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_SIZE="1", MASTER_ADDR="127.0.0.1")
# The only process listens wherever it can.
os.environ.update(MASTER_PORT="0", DS_ACCELERATOR="cpu")
import deepspeed

# Else it is compiled first.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
stage, accumulated, batches = map(int, sys.argv[1:4])
overflows, plain, critic = (word in sys.argv[4:] for word in ("overflow", "plain", "critic"))
dtype = torch.float16 if overflows else torch.float32
# DeepSpeed asks for more of a processor than this job needs.
deepspeed.accelerator.get_accelerator().is_fp16_supported = lambda: True


def engine():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 1))
    weights = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    groups = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": accumulated,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage, **({"sub_group_size": 64} if stage == 3 else {})},
    }
    if overflows:
        config["fp16"] = {"enabled": True, "initial_scale_power": 16, "loss_scale_window": 2, "hysteresis": 1}
    if "disturbed" in sys.argv:
        config.update(wall_clock_breakdown=True, memory_breakdown=True, comms_logger={"enabled": True})
        config["flops_profiler"] = {"enabled": True, "profile_step": 2}
    return deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups), config=config)[0]


if "pipeline" in sys.argv:
    deepspeed.init_distributed("gloo")
    layers = [torch.nn.Linear(16, 16), torch.nn.Linear(16, 1)]
    net = deepspeed.pipe.PipelineModule(layers=layers, num_stages=1, loss_fn=torch.nn.functional.mse_loss)
    config = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": accumulated}
    pipeline = deepspeed.initialize(model=net, optimizer=torch.optim.AdamW(net.parameters()), config=config)[0]
    data = iter([(torch.ones(4, 16), torch.zeros(4, 1))] * batches)
    for _ in range(batches // accumulated):
        pipeline.train_batch(data_iter=data)
    print(json.dumps({"steps": pipeline.global_steps}))
    sys.exit()
if "tutorial" in sys.argv:
    from torch.profiler import ProfilerActivity, profile, record_function, tensorboard_trace_handler

    model_engine, inputs = engine(), torch.ones(4, 16)
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=5, warmup=2, active=6, repeat=2),
        on_trace_ready=tensorboard_trace_handler,
        with_stack=True,
    ) as profiler:
        for _ in range(batches):
            loss = model_engine(inputs).pow(2).sum()
            model_engine.backward(loss)
            model_engine.step()
            profiler.step()
    with profile(record_shapes=True) as prof:
        with record_function("model_forward"):
            model_engine(inputs)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as prof:
        with record_function("model_forward"):
            model_engine(inputs)
    print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=10))
    # There is no GPU here: PyTorch refuses to profile that alone.
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as prof:
        model_engine(inputs)
    print(prof.key_averages().table(sort_by="self_cuda_memory_usage", row_limit=10))
    print(json.dumps({"steps": model_engine.global_steps}))
    sys.exit()
engines = [engine() for _ in range(1 + critic)]
for _ in range(batches):
    for one in engines:
        loss = one(torch.ones(4, 16, dtype=dtype)).float().pow(2).sum()
        if plain:
            loss.backward()
        else:
            one.backward(loss)
        one.step()
first = engines[0]
print(json.dumps({"steps": first.global_steps, "micro": first.micro_steps, "skipped": first.skipped_steps}))
