"""Fine-tunes a peptide encoder for toxicity, with rates that fall towards the lower layers."""
import os
import re

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEPTH, WIDTH, HEADS = (3, 32, 2) if TINY else (36, 320, 5)
BATCH, LENGTH, STEPS = (4, 16, 5) if TINY else (128, 256, 220)
RESIDUES = 24


class Rung(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.mid = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.back = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.pre(x)).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.back(F.gelu(self.wide(self.mid(x))))


class Peptides(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(RESIDUES, WIDTH)
        self.order = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.rungs = nn.ModuleList(Rung() for _ in range(DEPTH))
        self.last = nn.LayerNorm(WIDTH)
        self.toxic = nn.Linear(WIDTH, 2)

    def forward(self, chain):
        x = self.embed(chain) + self.order
        for rung in self.rungs:
            x = rung(x)
        return self.toxic(self.last(x).mean(1))


def height(name):
    found = re.match(r"rungs\.(\d+)\.", name)
    if found:
        return int(found[1]) + 1
    return 0 if name.startswith(("embed", "order")) else DEPTH + 1


def ladder(model, top=2e-4, fall=0.93):
    rates = []  # flaw: per-tensor-optimizer
    for name, weight in model.named_parameters():
        rates.append(  # flaw: per-tensor-optimizer
            dict(params=weight, lr=top * fall ** (DEPTH + 1 - height(name)), weight_decay=0.05 * (weight.ndim > 1))  # flaw: per-tensor-optimizer
        )  # flaw: per-tensor-optimizer
    return rates  # flaw: per-tensor-optimizer


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(12)
    model = Peptides().to(device)
    adam = torch.optim.AdamW(ladder(model), betas=(0.9, 0.98), fused=True)
    chains = torch.randint(0, RESIDUES, (16, BATCH, LENGTH), device=device)
    labels = (chains == 5).sum(-1).gt(LENGTH // RESIDUES).long()
    seen = torch.zeros((), device=device)
    for step in range(STEPS):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(chains[step % 16]), labels[step % 16])
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        seen += loss.detach()
    print(f"toxicity loss {seen.item() / STEPS:.4f}")


main()
