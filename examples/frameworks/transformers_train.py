"""A small Llama with Hugging Face's Trainer: ``stepscope record -- python examples/frameworks/transformers_train.py``.

Nothing in it is about profiling. Two batches make a step, and the model is evaluated after every fifth: the report has the
steps that the trainer counts, and evaluating is outside of them.
"""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

if __name__ == "__main__":
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
    )
    texts = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 256, (80, 32))]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            num_train_epochs=1,
            eval_strategy="steps",
            eval_steps=5,
            report_to="none",
            save_strategy="no",
        )
        Trainer(LlamaForCausalLM(config), arguments, train_dataset=texts, eval_dataset=texts[:8]).train()
