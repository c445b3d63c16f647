"""What DeepSpeed's own profilers say, as JSON on the last line.

``flops MODEL RUN``: one forward and backward pass, recorded into a run, and what the flops profiler counts of it, by module.
``comms``: collectives of two ranks, with what the comms logger has of them.
``timers``: a few steps of an engine that prints its timers.
"""

import json
import os
import sys

import torch

WORDS = sys.argv[1:]


def small():
    """Modules of several kinds, one of them in two places."""
    shared = torch.nn.Linear(32, 32)

    class Block(torch.nn.Module):
        def __init__(self, frozen):
            super().__init__()
            self.norm = torch.nn.LayerNorm(32)
            self.inner = torch.nn.Sequential(
                torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32, bias=False)
            )
            self.tied = shared
            self.inner[0].requires_grad_(not frozen)

        def forward(self, x):
            return x + self.tied(self.inner(self.norm(x)))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(100, 32)
            self.blocks = torch.nn.ModuleList([Block(frozen=True), Block(frozen=False)])
            self.convolution = torch.nn.Conv1d(32, 16, 3, padding=1, groups=2)
            self.head = torch.nn.Linear(16, 10)

        def forward(self, tokens):
            x = self.embedding(tokens)
            for block in self.blocks:
                x = block(x)
            return self.head(self.convolution(x.transpose(1, 2)).transpose(1, 2))

    return Net(), (torch.arange(24).reshape(2, 12),)


def llama():
    """A real model of Transformers, which computes attention by PyTorch's own function."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    config = LlamaConfig(num_attention_heads=4, num_key_value_heads=2, use_cache=False, **sizes)
    return LlamaForCausalLM(config), (torch.arange(32).reshape(2, 16),)


def flops(folder):
    """Records each model into a run of its name; what the flops profiler counted by name."""
    return {make.__name__: flops_of(*make(), f"{folder}/{make.__name__}") for make in (small, llama)}


def flops_of(model, arguments, run):
    from stepscope.profiler import profile

    with profile(run=run, record_shapes=True):
        out = model(*arguments)
        (out if torch.is_tensor(out) else out.logits).sum().backward()
    from deepspeed.profiling.flops_profiler import FlopsProfiler
    from deepspeed.profiling.flops_profiler import profiler as of_deepspeed

    profiler = FlopsProfiler(model)
    profiler.start_profile()
    model(*arguments)
    counted = {
        path: [module.__params__, of_deepspeed.get_module_macs(module), of_deepspeed.get_module_flops(module)]
        for path, module in model.named_modules()
    }
    profiler.end_profile()
    return counted


def comms():
    import deepspeed
    import deepspeed.comm as dist

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="gloo")
    dist.configure(enabled=True, prof_all=True)
    rank = dist.get_rank()
    for _ in range(12):
        dist.all_reduce(torch.ones(1000))
    for _ in range(3):
        dist.all_reduce(torch.ones(50, dtype=torch.float64))
    for _ in range(5):
        dist.all_gather([torch.zeros(300), torch.zeros(300)], torch.ones(300))
        dist.all_gather_into_tensor(torch.zeros(800), torch.ones(400))
        dist.reduce_scatter_tensor(torch.zeros(100), torch.ones(200))
        dist.all_to_all_single(torch.zeros(64), torch.ones(64))
        dist.broadcast(torch.ones(77), 0)
        dist.barrier()
    if rank == 0:
        dist.send(torch.ones(9), 1)
    else:
        dist.recv(torch.zeros(9), 0)
    from deepspeed.comm.comm import comms_logger

    logged = comms_logger.log_all(print_log=False, return_dict=True)["summary"]
    dist.barrier()
    dist.destroy_process_group()
    return {"rank": rank, "logged": logged}


def timers():
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    model = torch.nn.Sequential(*(torch.nn.Linear(768, 768) for _ in range(8)))
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "wall_clock_breakdown": True,
        "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    for _ in range(14):
        engine.backward(engine(torch.ones(512, 768)).sum())
        engine.step()
    return {}


if __name__ == "__main__":
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    print(json.dumps({"flops": flops, "comms": comms, "timers": timers}[WORDS[0]](*WORDS[1:])))
