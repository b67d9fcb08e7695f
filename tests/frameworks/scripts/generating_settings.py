"""Tokens from a language model, with settings that come from a dataclass."""

from dataclasses import asdict, dataclass

import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel


@dataclass
class Decoding:
    max_new_tokens: int = 6
    do_sample: bool = False
    use_cache: bool = False
    pad_token_id: int = 0


config = GPT2Config(vocab_size=100, n_embd=16, n_layer=2, n_head=2, n_positions=64, eos_token_id=None)
model = GPT2LMHeadModel(config).eval()
generation_config = GenerationConfig(**asdict(Decoding()))
prompts = torch.randint(0, 100, (2, 8))
for _ in range(6):
    with torch.no_grad():
        tokens = model.generate(prompts, generation_config=generation_config)
