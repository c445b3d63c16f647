"""Iterations of a server, labelled as vLLM labels them: ``stepscope record -- python examples/frameworks/serve.py``.

A label says how many requests, and tokens of them, a pass of the model reads in (context) and continues (generation). The
passes are the steps of the run, each with what it does, its requests and its tokens.
"""

import torch
from torch.profiler import record_function

if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.Embedding(256, 64), torch.nn.Linear(64, 256), torch.nn.GELU())
    prompts = [torch.randint(0, 256, (length,)) for length in (16, 48, 32)]
    # The last token of each request that has begun.
    running = torch.empty(0, dtype=torch.int64)
    for _ in range(9):
        prompt = prompts.pop(0) if prompts else running[:0]
        context = f"{min(len(prompt), 1)}({len(prompt)})"
        with record_function(f"execute_context_{context}_generation_{len(running)}({len(running)})"):
            with torch.inference_mode():
                scores = model(torch.cat([prompt, running]))
        running = scores[max(len(prompt) - 1, 0) :].argmax(-1)
