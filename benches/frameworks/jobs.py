"""Trains a tiny model on the CPU with a framework that Stepscope knows, which forgets it in every other stretch of steps, and
prints as JSON the median ns of a step without and with it. Steps are short, so that they differ by less than what is measured,
unless the layers are wide.

Arguments: the framework, the number of steps, the width of the layers, and ``control``: forget nothing.
"""

import json
import os
import socket
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

framework, steps, width, is_control = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "control" in sys.argv
#: Steps of one kind in a row.
STRETCH = 10
#: What SGLang's scheduler has timed.
TIMES = Path("times.json")
os.environ["HF_HUB_OFFLINE"] = "1"
import torch

# Lightning asks MPI whether it runs below it; the library of this environment lies in the one beside it.
os.environ.setdefault("MPI4PY_LIBMPI", str(Path(torch.__file__).parents[3]))
torch.set_num_threads(1)
BATCH = 2
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(6)])
inputs = torch.ones(BATCH, width)


class Clock:
    """Times each step, and switches at the ends of stretches."""

    def __init__(self, switch):
        self._switch, self._last, self.count = switch, None, 0
        self.steps = {False: [], True: []}
        self._is_watched = True

    def step_ended(self):
        now = time.perf_counter_ns()
        # The first step after a switch is neither.
        if self._last is not None:
            self.steps[self._is_watched].append(now - self._last)
        self.count += 1
        self._last = time.perf_counter_ns()
        if self.count % STRETCH == 0:
            self._is_watched = not self._is_watched
            if not is_control:
                self._switch(self._is_watched)
            self._last = None


def swapped(owner, names):
    """A switch between the methods of ours and those that they wrap."""
    own = {name: vars(owner)[name] for name in names if name in vars(owner)}
    ours = {name: method for name, method in own.items() if "stepscope" in method.__code__.co_filename}
    assert ours, f"Stepscope does not know {owner}"

    def switch(is_watched):
        for name, method in ours.items():
            setattr(owner, name, method if is_watched else method.__wrapped__)

    return switch


def in_list(found, kind):
    """A switch that takes the object of a class out of a list, and puts it back."""
    (at,) = [at for at, each in enumerate(found) if kind in [base.__name__ for base in type(each).__mro__]]
    ours = found[at]
    return lambda is_watched: found.insert(at, ours) if is_watched else found.remove(ours)


def together(*switches):
    return lambda is_watched: [switch(is_watched) for switch in switches]


def of_trainer(kind, network, arguments, data, **options):
    """A trainer of Transformers, or of what is made of it."""
    from transformers import Trainer, TrainerCallback

    class Times(TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            # What classes that are made of the trainer do is labelled from here on.
            phases = ["training_step", "compute_loss"]
            methods = [swapped(of, phases) for of in kind.__mro__ if of is Trainer or vars(of).keys() & {*phases}]
            self.clock = Clock(together(*methods, in_list(trainer.callback_handler.callbacks, "StepscopeCallback")))

        def on_step_end(self, args, state, control, **kwargs):
            self.clock.step_ended()

    times = Times()
    trainer = kind(network, arguments, train_dataset=data, callbacks=[times], **options)
    trainer.train()
    return times.clock.steps


def transformers():
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    ids = torch.randint(0, 256, (8,))
    data = [{"input_ids": ids, "labels": ids}] * (4 * steps)
    config = LlamaConfig(
        vocab_size=256, hidden_size=width, intermediate_size=width, num_hidden_layers=1, num_attention_heads=4
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
    return of_trainer(Trainer, LlamaForCausalLM(config), arguments, data)


def lightning():
    import lightning.pytorch as pl
    from lightning.pytorch.profilers import PassThroughProfiler

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, batch_idx):
            return self.model(batch[0]).sum()

        def on_train_batch_end(self, *_):
            clock.step_ended()

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
    trainer = pl.Trainer(accelerator="cpu", max_epochs=1, **quiet)
    ours, nothing = trainer.profiler, PassThroughProfiler()
    assert type(ours).__name__ == "StepscopeProfiler"

    def switch_profiler(is_watched):
        trainer.profiler = ours if is_watched else nothing

    clock = Clock(together(switch_profiler, in_list(trainer.callbacks, "StepscopeCallback")))
    trainer.fit(Model(), loader)
    return clock.steps


def deepspeed(stage=1):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_SIZE="1", MASTER_ADDR="127.0.0.1")
    os.environ.update(MASTER_PORT=str(port), DS_ACCELERATOR="cpu")
    import deepspeed
    from stepscope import _deepspeed_ranges

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    config = {
        "train_micro_batch_size_per_gpu": BATCH,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage},
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    engine = deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]
    accelerator = deepspeed.accelerator.get_accelerator()

    def switch_ranges(is_watched):
        if is_watched:
            _deepspeed_ranges.watch(accelerator)
        else:
            del accelerator.range_push, accelerator.range_pop

    names = ["forward", "backward", "step", "_stop_timers", "_backward_prologue", "_backward_epilogue"]
    clock = Clock(together(swapped(deepspeed.DeepSpeedEngine, names), switch_ranges))
    for _ in range(steps):
        engine.backward(engine(inputs).sum())
        engine.step()
        clock.step_ended()
    return clock.steps


def stepped(profiler):
    """A loop that tells a profiler of its steps, or does not."""
    is_told = [True]
    clock = Clock(lambda is_watched: is_told.__setitem__(0, is_watched))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for _ in range(steps):
        model(inputs).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if is_told[0]:
            profiler.step()
        clock.step_ended()
    return clock.steps


def accelerate():
    from accelerate import Accelerator, ProfileKwargs

    schedule = {"wait": 0, "warmup": 1, "active": steps, "repeat": 1, "skip_first": 0}
    handler = ProfileKwargs(activities=["cpu"], schedule_option=schedule)
    with Accelerator(cpu=True, kwargs_handlers=[handler]).profile() as profiler:
        return stepped(profiler)


def torchtune():
    from stepscope.torchtune import setup_profiler

    schedule = {"wait_steps": 0, "warmup_steps": 1, "active_steps": steps, "num_cycles": 1}
    profiler, _ = setup_profiler(enabled=True, cuda=False, **schedule)
    profiler.start()
    found = stepped(profiler)
    profiler.stop()
    return found


def trl():
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    words = {f"word{number}": number for number in range(256)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, "word0")), pad_token="word0", eos_token="word1"
    )
    sizes = {"hidden_size": width, "intermediate_size": width, "num_hidden_layers": 1, "num_attention_heads": 4}
    texts = Dataset.from_dict({"input_ids": [list(range(2, 10))] * (4 * steps)})
    options = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "logging_steps": steps + 1}
    arguments = SFTConfig("out", use_cpu=True, bf16=False, per_device_train_batch_size=4, max_steps=steps, **options)
    return of_trainer(
        SFTTrainer, LlamaForCausalLM(LlamaConfig(vocab_size=256, **sizes)), arguments, texts, processing_class=tokenizer
    )


def save_model():
    """A model for servers, without weights."""
    from transformers import LlamaConfig

    sizes = {"hidden_size": 4 * width, "intermediate_size": 4 * width, "num_hidden_layers": 2, "num_attention_heads": 2}
    LlamaConfig(
        architectures=["LlamaForCausalLM"], vocab_size=256, max_position_embeddings=256, **sizes
    ).save_pretrained("model")


def vllm():
    # The engine and its worker are in this process.
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_NO_USAGE_STATS="1")
    from stepscope import _vllm
    from vllm import LLM, SamplingParams

    save_model()
    options = {"load_format": "dummy", "skip_tokenizer_init": True, "enforce_eager": True, "dtype": "float32"}
    limits = {"max_model_len": 128, "max_num_seqs": 1, "kv_cache_memory_bytes": 16 << 20}
    engine = LLM("model", distributed_executor_backend="uni", **options, **limits).llm_engine
    is_nothing = _vllm._is_nothing

    def switch(is_watched):
        _vllm._is_nothing = is_nothing if is_watched else lambda scope: False

    clock = Clock(switch)
    sampling = SamplingParams(max_tokens=100, ignore_eos=True, detokenize=False)
    for number in range(steps // 100):
        engine.add_request(str(number), {"prompt_token_ids": [3] * 8}, sampling)
        while engine.has_unfinished_requests():
            engine.step()
            clock.step_ended()
    return clock.steps


def sglang():
    """Its scheduler is a process of its own, which begins with this file: see :func:`time_scheduler`."""
    from sglang import Engine

    save_model()
    options = {"load_format": "dummy", "skip_tokenizer_init": True, "dtype": "float32", "device": "cpu"}
    options |= {"attention_backend": "torch_native", "sampling_backend": "pytorch", "grammar_backend": "none"}
    limits = {"max_total_tokens": 2048, "max_running_requests": 4}
    engine = Engine(model_path="model", disable_cuda_graph=True, disable_overlap_schedule=True, **options, **limits)
    while not TIMES.exists():
        engine.generate(
            input_ids=[3] * 8, sampling_params={"max_new_tokens": 101, "ignore_eos": True, "temperature": 0}
        )
    engine.shutdown()
    return dict(zip((False, True), json.loads(TIMES.read_text())))


def time_scheduler():
    """Time each pass of SGLang's scheduler, and write the times when there were as many passes as steps were asked for."""
    from sglang.srt.managers.scheduler import Scheduler
    from stepscope import _recorder, _sglang

    process = Scheduler.process_batch_result
    nothing = SimpleNamespace(are_labels_wanted=bool)

    def switch(is_watched):
        _sglang._recorder = _recorder if is_watched else nothing

    clock = Clock(switch)

    def process_and_time(*arguments):
        process(*arguments)
        clock.step_ended()
        if clock.count == steps:
            unfinished = TIMES.with_suffix(".unfinished")
            unfinished.write_text(json.dumps([clock.steps[False], clock.steps[True]]))
            unfinished.rename(TIMES)

    Scheduler.process_batch_result = process_and_time


jobs = {"transformers": transformers, "trl": trl, "lightning": lightning, "deepspeed": deepspeed}
jobs |= {
    "deepspeed-zero3": lambda: deepspeed(3),
    "accelerate": accelerate,
    "torchtune": torchtune,
    "vllm": vllm,
    "sglang": sglang,
}
if __name__ == "__main__":
    found = jobs[framework]()
    print(json.dumps([statistics.median(found[is_watched]) for is_watched in (False, True)]))
elif framework == "sglang":
    time_scheduler()
