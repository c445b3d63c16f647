"""Fine-tuning with TRL, on texts of chance: ``stepscope record -- python examples/frameworks/trl_train.py``.

Nothing in it is about profiling, and nothing is downloaded. The report has the steps that the trainer counts, and its phases.
"""

import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

if __name__ == "__main__":
    words = {f"word{number}": number for number in range(256)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, "word0")), pad_token="word0", eos_token="word1"
    )
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=256, max_position_embeddings=32, **sizes))
    texts = Dataset.from_dict({"input_ids": torch.randint(2, 256, (80, 32)).tolist()})
    with tempfile.TemporaryDirectory() as folder:
        arguments = SFTConfig(
            folder, use_cpu=True, bf16=False, per_device_train_batch_size=4, num_train_epochs=1, save_strategy="no"
        )
        SFTTrainer(model, arguments, train_dataset=texts, processing_class=tokenizer).train()
