"""A model from a configuration whose values come from a dataclass."""

from dataclasses import asdict, dataclass

import torch
from transformers import GPT2Config, GPT2LMHeadModel


@dataclass
class Size:
    vocab_size: int = 99
    n_embd: int = 16
    n_layer: int = 2
    n_head: int = 2
    n_positions: int = 32
    attn_implementation: str = "eager"


model = GPT2LMHeadModel(GPT2Config(**asdict(Size())))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(12):
    ids = torch.randint(0, 99, (4, 16))
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
