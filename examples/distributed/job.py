"""What the scripts of this folder share: how a rank begins and ends."""

import argparse

import torch
import torch.distributed as distributed


def begin(description):
    """Join the job that torchrun has started; returns the number of training steps to make."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo")
    return steps


def end():
    """Leave the job when all ranks are done: gloo may abort in a rank whose peer has left in the middle."""
    store = distributed.distributed_c10d._get_default_store()
    if store.add("ranks at the end", 1) == distributed.get_world_size():
        store.set("all are at the end", "yes")
    store.wait(["all are at the end"])
    distributed.destroy_process_group()


def say(step, loss):
    """Print the loss, once for the job."""
    if distributed.get_rank() == distributed.get_world_size() - 1:
        print(f"step {step} loss {loss:.4f}", flush=True)
