"""Trains a linear model with Lightning's Trainer on the CPU, and prints its ``global_step`` as JSON.

Arguments: the package, and more words: ``accumulate`` takes two batches for a step; ``several`` has two optimizers;
``raise`` fails in the middle and trains again; ``profiler`` has our profiler record the run, and validates afterwards; ``simple`` and ``traced`` have
one of Lightning's.
"""

import importlib
import json
import sys

import torch

package, words = sys.argv[1], sys.argv[2:]
pl = importlib.import_module(package)


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.other = torch.nn.Linear(8, 1)
        self.automatic_optimization = "several" not in words

    def training_step(self, batch, batch_idx):
        if "raise" in words and self.current_epoch == 0 and batch_idx == 3:
            raise RuntimeError("on purpose")
        loss = (self.layer(batch[0]) + self.other(batch[0])).pow(2).sum()
        if not self.automatic_optimization:
            for optimizer in self.optimizers():
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in self.optimizers():
                optimizer.step()
        return loss

    def validation_step(self, batch, batch_idx):
        self.layer(batch[0]).sum()

    def configure_optimizers(self):
        if self.automatic_optimization:
            return torch.optim.SGD(self.parameters(), lr=0.001)
        return [torch.optim.SGD(layer.parameters(), lr=0.001) for layer in (self.layer, self.other)]


def loader():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(16, 8)), batch_size=2)


options = {"accumulate_grad_batches": 2} if "accumulate" in words else {}
if "profiler" in words:
    from stepscope.lightning import StepscopeProfiler

    options["profiler"] = StepscopeProfiler(run="run", record_shapes=True)
if "simple" in words:
    options["profiler"] = "simple"
if "traced" in words:
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=6)
    profiler = importlib.import_module(f"{package}.profilers").PyTorchProfiler
    options["profiler"] = profiler(dirpath="out", filename="x", schedule=schedule)
callbacks = importlib.import_module(f"{package}.callbacks")


def trainer():
    return pl.Trainer(
        accelerator="cpu",
        max_epochs=2,
        val_check_interval=4,
        logger=False,
        default_root_dir="out",
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callbacks.ModelCheckpoint(every_n_epochs=1, save_top_k=-1)],
        **options,
    )


steps = []
for _ in range(2 if "raise" in words else 1):
    one = trainer()
    try:
        one.fit(Model(), loader(), loader())
    except RuntimeError:
        words = []
    steps.append(one.global_step)
    if "profiler" in words:
        one.validate(Model(), loader())
print(json.dumps(steps))
