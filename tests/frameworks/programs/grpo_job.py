"""Two steps of TRL's GRPO on the CPU, with random weights, and a reward that is an operator; prints the trainer's count as JSON."""

import json
import os

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

words = {f"w{number}": number for number in range(64)}
tokenizer = Tokenizer(models.WordLevel(words, "w0"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}


def reward(completions, **_):
    return torch.erfinv(torch.zeros(len(completions))).tolist()


trainer = GRPOTrainer(
    LlamaForCausalLM(LlamaConfig(vocab_size=64, max_position_embeddings=32, **sizes)),
    reward_funcs=reward,
    args=GRPOConfig(
        "out",
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=4,
        max_steps=2,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    ),
    train_dataset=Dataset.from_dict({"prompt": ["w3 w4", "w5 w6"]}),
    processing_class=PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="w0", eos_token="w1"),
)
trainer.train()
print(json.dumps([trainer.state.global_step]))
