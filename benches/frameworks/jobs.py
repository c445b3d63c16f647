"""Trains a small model on the CPU with a framework, and prints the ns of wall time of a step.

Arguments: the framework, the number of steps, and ``watched`` or ``unwatched``: whether Stepscope knows the framework.
"""

import os
import socket
import sys
import time
from pathlib import Path

framework, steps, watched = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "watched"
if not watched and "stepscope" in sys.modules:
    from stepscope import _frameworks

    _frameworks._FRAMEWORKS.clear()
os.environ["HF_HUB_OFFLINE"] = "1"
import torch

# Lightning asks MPI whether it runs below it; the library of this environment lies in the one beside it.
os.environ.setdefault("MPI4PY_LIBMPI", str(Path(torch.__file__).parents[3]))
torch.set_num_threads(1)
WIDTH, BATCH = 512, 64
model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(6)])
inputs = torch.ones(BATCH, WIDTH)


def transformers():
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

    times = []

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            times.append(time.perf_counter_ns())

    ids = torch.randint(0, 256, (64,))
    data = [{"input_ids": ids, "labels": ids}] * (4 * steps)
    config = LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4
    )
    arguments = TrainingArguments(
        output_dir="out",
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        per_device_train_batch_size=4,
        logging_steps=steps + 1,
        max_steps=steps,
    )
    Trainer(LlamaForCausalLM(config), arguments, train_dataset=data, callbacks=[Clock()]).train()
    return times


def lightning():
    import lightning.pytorch as pl

    times = []

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, batch_idx):
            return self.model(batch[0]).sum()

        def on_train_batch_end(self, *_):
            times.append(time.perf_counter_ns())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-6)

    data = torch.utils.data.TensorDataset(inputs.repeat(steps, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    pl.Trainer(accelerator="cpu", max_epochs=1, **quiet).fit(Model(), loader)
    return times


def deepspeed():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_SIZE="1", MASTER_ADDR="127.0.0.1")
    os.environ.update(MASTER_PORT=str(port), DS_ACCELERATOR="cpu")
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    config = {
        "train_micro_batch_size_per_gpu": BATCH,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": 1},
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    engine = deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]
    times = []
    for _ in range(steps):
        engine.backward(engine(inputs).sum())
        engine.step()
        times.append(time.perf_counter_ns())
    return times


times = {"transformers": transformers, "lightning": lightning, "deepspeed": deepspeed}[framework]()
durations = sorted(after - before for before, after in zip(times, times[1:]))
print(durations[len(durations) // 2])
