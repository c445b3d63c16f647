"""A model of two layers, without weights, for a server that loads it with random ones: nothing is downloaded.

``python examples/frameworks/tiny_llama.py tiny-llama`` makes its folder. Recorded servers of it, on a processor:

``stepscope record --as-torch-profiler -- python -m vllm.entrypoints.openai.api_server --model tiny-llama
--load-format dummy --enforce-eager --dtype float32 --max-model-len 128 --kv-cache-memory-bytes 16777216
--distributed-executor-backend uni --profiler-config.profiler torch --profiler-config.torch_profiler_dir traces``

``stepscope record --as-torch-profiler -- python -m sglang.launch_server --model-path tiny-llama --load-format dummy
--device cpu --attention-backend torch_native --dtype float32 --disable-cuda-graph --sampling-backend pytorch
--grammar-backend none --max-total-tokens 2048 --max-running-requests 4``

Their passes are the steps of the run, each with what it does, its requests and its tokens.
"""

import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

if __name__ == "__main__":
    words = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(3, 256))]
    config = LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        bos_token_id=words.index("<s>"),
        eos_token_id=words.index("</s>"),
    )
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    for part in (
        config,
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"),
    ):
        part.save_pretrained(sys.argv[1])
