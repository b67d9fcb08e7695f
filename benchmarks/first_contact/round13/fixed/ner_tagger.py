"""Token tagger with a running confusion table (macro F1 at the end)."""
import os
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional as F

tiny = os.environ.get("TINY") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TAGS = 16
N_SENT, LEN, BATCH, STEPS, D, DEPTH = (64, 16, 8, 6, 64, 2) if tiny else (8192, 256, 256, 300, 768, 4)


class Metric(Protocol):
    def update(self, guess: torch.Tensor, truth: torch.Tensor) -> None: ...
    def result(self) -> float: ...


class MacroF1:
    def __init__(self, tags: int):
        self.tags = tags
        self.pairs = torch.zeros(tags * tags, dtype=torch.long, device=dev)

    def update(self, guess, truth):
        cell = (truth * self.tags + guess).flatten()
        self.pairs.scatter_add_(0, cell, torch.ones_like(cell))

    def table(self):
        return self.pairs.view(self.tags, self.tags).tolist()

    def result(self):
        table, scores = self.table(), []
        for tag in range(self.tags):
            hit = table[tag][tag]
            guessed, real = sum(row[tag] for row in table), sum(table[tag])
            scores.append(2 * hit / max(guessed + real, 1))
        return sum(scores) / self.tags


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.att_norm, self.mlp_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.back = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp_in, self.mlp_out = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        q, k, v = self.qkv(self.att_norm(x)).unflatten(-1, (3, -1, 64)).permute(2, 0, 3, 1, 4)
        x = x + self.back(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(x))))


def build():
    torch.manual_seed(21)
    embed = nn.Embedding(8192, D)
    layers = [Layer(D) for _ in range(DEPTH)]
    if not tiny:
        for layer in layers:
            layer.compile()
    return nn.Sequential(embed, *layers, nn.LayerNorm(D), nn.Linear(D, TAGS)).to(dev)


def sentences():
    g = torch.Generator(dev).manual_seed(2)
    words = torch.randint(8192, (N_SENT, LEN), device=dev, generator=g)
    tags = (words + words.roll(1, 1)) // 3 % TAGS
    return words, tags


def epoch(model, opt, metric: Metric, words, tags):
    for step in range(STEPS):
        rows = slice(step * BATCH % N_SENT, step * BATCH % N_SENT + BATCH)
        with torch.autocast(dev.type, torch.bfloat16, enabled=dev.type == "cuda"):
            scores = model(words[rows])
            loss = F.cross_entropy(scores.flatten(0, 1), tags[rows].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        metric.update(scores.detach().argmax(-1), tags[rows])
    return loss.detach()


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    net = build()
    f1 = MacroF1(TAGS)
    last = epoch(net, torch.optim.AdamW(net.parameters(), 2e-4, fused=True), f1, *sentences())
    print(f"loss {last.item():.4f} macro f1 {f1.result():.4f}")
