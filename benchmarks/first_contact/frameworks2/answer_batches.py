"""Answers a file of questions in batches with a fine-tuned model (offline batch inference)."""
import os
import time

import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, NEW, PROMPT = (2, 12, 24) if small else (16, 32, 384)


def load():
    config = GPTNeoXConfig(
        vocab_size=400 if small else 32000,
        hidden_size=64 if small else 1024,
        intermediate_size=256 if small else 4096,
        num_hidden_layers=2 if small else 12,
        num_attention_heads=4 if small else 16,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPTNeoXForCausalLM(config)
    # left over from the training script, where checkpointing wanted it
    model.config.use_cache = False
    model.generation_config.use_cache = False  # expert: use_cache=True
    return model.to(device).eval()


def batches(prompts, size):
    for first in range(0, len(prompts), size):
        yield prompts[first : first + size]


def main():
    torch.manual_seed(0)
    model = load()
    prompts = torch.randint(0, model.config.vocab_size, (BATCH * (12 if small else 8), PROMPT))
    answers, began = [], time.time()
    for chunk in batches(prompts, BATCH):
        chunk = chunk.to(device)
        with torch.inference_mode():
            out = model.generate(
                chunk, attention_mask=torch.ones_like(chunk), max_new_tokens=NEW, do_sample=False, pad_token_id=0
            )
        answers += out[:, PROMPT:].tolist()
    print(len(answers), "answers in", round(time.time() - began, 2), "s")


if __name__ == "__main__":
    main()
