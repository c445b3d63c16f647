"""Trains a small Llama with Hugging Face's Trainer on the CPU, and prints its counts as JSON.

Arguments: ``plain``, or ``zero1`` to ``zero3``; ``raise`` has a callback fail in the middle and trains again; ``first`` has
the callback given by the program, too, from a module that it imports before all others, ``imported`` only imports that;
``profiled`` has a profiler of PyTorch's step with the trainer. Last come ``--report_to`` and names, as Transformers reads them.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
words = sys.argv[1:]
if "first" in words or "imported" in words:
    from stepscope.transformers import StepscopeCallback
zero = next((int(word[4:]) for word in words if word.startswith("zero")), None)
if zero is not None:
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_SIZE="1", MASTER_ADDR="127.0.0.1")
    # The only process listens wherever it can.
    os.environ.update(MASTER_PORT="0", DS_ACCELERATOR="cpu")
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
import torch
from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, at):
        ids = torch.randint(0, 256, (8,), generator=torch.Generator().manual_seed(at))
        return {"input_ids": ids, "labels": ids}


class Fails(TrainerCallback):
    def on_substep_end(self, args, state, control, **kwargs):
        if state.global_step == 3:
            raise RuntimeError("on purpose")


class Profiles(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        activities = [torch.profiler.ProfilerActivity.CPU]
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=2)
        self.profiler = torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=self.save)
        self.profiler.start()

    def save(self, profiler):
        if not os.path.exists("trace.json"):
            profiler.export_chrome_trace("trace.json")

    def on_step_end(self, args, state, control, **kwargs):
        self.profiler.step()

    def on_train_end(self, args, state, control, **kwargs):
        self.profiler.stop()


config = LlamaConfig(
    vocab_size=256,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=16,
)
options = {}
if zero is not None:
    options["deepspeed"] = {
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": zero},
    }
reported = words[words.index("--report_to") :] if "--report_to" in words else ["--report_to", "none"]
(parsed,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(["--output_dir", "out", *reported])
arguments = TrainingArguments(
    output_dir="out",
    use_cpu=zero is None,
    report_to=parsed.report_to,
    disable_tqdm=True,
    save_strategy="steps",
    save_steps=4,
    save_only_model=True,
    per_device_train_batch_size=2,
    gradient_accumulation_steps=2,
    eval_strategy="steps",
    eval_steps=2,
    logging_steps=1000,
    num_train_epochs=1,
    optim="adamw_torch",
    **options,
)
callbacks = [Fails()] if "raise" in words else []
if "profiled" in words:
    callbacks.append(Profiles())
if "first" in words:
    callbacks.append(StepscopeCallback())


def trainer(callbacks):
    return Trainer(LlamaForCausalLM(config), arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=callbacks)


steps = []
if "raise" in words:
    first = trainer(callbacks)
    try:
        first.train()
    except RuntimeError:
        steps.append(first.state.global_step)
    callbacks = []
second = trainer(callbacks)
second.train()
steps.append(second.state.global_step)
print(json.dumps(steps))
