"""Tokens from a language model."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    vocab_size=100, n_embd=16, n_layer=2, n_head=2, n_positions=64, bos_token_id=None, eos_token_id=None
)
model = GPT2LMHeadModel(config).eval()
prompts = torch.randint(0, 100, (2, 8))
for _ in range(6):
    with torch.no_grad():
        tokens = model.generate(prompts, max_new_tokens=6, do_sample=False, pad_token_id=0)
