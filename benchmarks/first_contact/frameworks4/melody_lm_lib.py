"""Event tokens of made-up melodies, and the language model for them."""
import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel

BOS, PAD = 0, 1


def melody(rng, events):
    """Pitch, length and velocity of each note, with a theme that returns."""
    theme = [(rng.randrange(60), rng.randrange(16), rng.randrange(8)) for _ in range(rng.randrange(4, 12))]
    notes = []
    while len(notes) * 3 < events:
        shift = rng.choice([0, 0, 5, 7])
        notes += [((pitch + shift) % 128, length, velocity) for pitch, length, velocity in theme]
    tokens = [BOS]
    for pitch, length, velocity in notes:
        tokens += [2 + pitch, 130 + length, 146 + velocity]
    return tokens[:events]


def corpus(count, events, seed):
    rng = random.Random(seed)
    return torch.tensor([melody(rng, events) for _ in range(count)])


def make_model(sizes):
    config = GPT2Config(
        vocab_size=sizes["vocab"],
        n_positions=sizes["events"],
        n_embd=sizes["width"],
        n_layer=sizes["depth"],
        n_head=sizes["width"] // 64,
        attn_pdrop=0.0,
        bos_token_id=BOS,
        eos_token_id=BOS,
        use_cache=False,
        attn_implementation="sdpa",
    )
    return GPT2LMHeadModel(config)


def parameter_groups(model, weight_decay):
    plain = [p for p in model.parameters() if p.ndim < 2]
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
