"""Texts from batches of a loader, in two ways, and what the calls took by a clock of the script's own.

``python generating_batches.py clocked`` has the clock; it prints a line of JSON."""

import json
import sys
import time

import torch
from torch.utils.data import DataLoader
from transformers import BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel

clocked = sys.argv[1:] == ["clocked"]
torch.manual_seed(0)
config = GPT2Config(
    vocab_size=40, n_embd=64, n_layer=2, n_head=2, n_positions=128, bos_token_id=1, eos_token_id=2
)
writer = GPT2LMHeadModel(config).eval()
config = BartConfig(
    vocab_size=100, d_model=64, encoder_layers=3, decoder_layers=1, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=128, decoder_ffn_dim=128, forced_eos_token_id=None,
    eos_token_id=None,
)  # fmt: skip
translator = BartForConditionalGeneration(config).eval()
loader = DataLoader(torch.randint(3, 40, (400, 48)), batch_size=2)
counts: list[tuple[int, int]] = []
passes: dict[str, list[float]] = {"writer": [], "translator": []}


def watched(model: torch.nn.Module, name: str) -> None:
    began = []
    model.register_forward_pre_hook(lambda *_: began.append(time.perf_counter()))
    model.register_forward_hook(lambda *_: passes[name].append(time.perf_counter() - began[-1]))


if clocked:
    watched(writer, "writer")
    watched(translator, "translator")
for number, batch in enumerate(loader):
    with torch.no_grad():
        text = writer.generate(batch, max_new_tokens=16, do_sample=True, pad_token_id=0)
        other = translator.generate(
            batch, max_new_tokens=8, num_beams=2, do_sample=False, decoder_start_token_id=2
        )
    counts.append((text.shape[1] - 48, other.shape[1] - 1))
    if clocked and number == 40:
        break
if clocked:
    print(json.dumps({"counts": counts, "passes": passes}))
