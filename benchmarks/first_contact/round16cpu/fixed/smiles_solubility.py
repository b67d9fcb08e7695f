"""Solubility of drug-like molecules from their SMILES strings (transformer encoder, mean over characters)."""
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Cfg:
    molecules: int = 1600
    batch: int = 16
    epochs: int = 1
    max_len: int = 128
    width: int = 96
    layers: int = 2
    letters: str = "CNOFSclno()=#123[]+-@H"


cfg = Cfg(molecules=48, batch=8, width=32) if os.environ.get("TINY") else Cfg()
PAD = 0


def library(cfg, seed=6):
    rng = np.random.default_rng(seed)
    rows, values = [], []
    for _ in range(cfg.molecules):
        row = rng.integers(1, len(cfg.letters) + 1, size=rng.integers(34, 53))
        rows.append(row)
        values.append(np.float32((row < 6).mean() * 4 - (row == 9).mean() * 8))
    return rows, np.asarray(values)


def as_block(rows, cfg):
    block = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for line, row in zip(block, rows):
        line[: len(row)] = row
    return torch.from_numpy(block)


def shuffled(rows, values, cfg, rng):
    order = rng.permutation(len(rows))
    for lo in range(0, len(order), cfg.batch):
        chosen = order[lo:lo + cfg.batch]
        yield as_block([rows[i] for i in chosen], cfg), torch.from_numpy(values[chosen])


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.letter = nn.Embedding(len(cfg.letters) + 1, cfg.width, padding_idx=PAD)
        self.place = nn.Embedding(cfg.max_len, cfg.width)
        layer = nn.TransformerEncoderLayer(cfg.width, 4, 4 * cfg.width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.value = nn.Linear(cfg.width, 1)

    def forward(self, ids):
        real = ids != PAD
        x = self.letter(ids) + self.place.weight[: ids.size(1)]
        x = self.encoder(x, src_key_padding_mask=~real)
        weight = real.unsqueeze(-1).to(x.dtype)
        return self.value((x * weight).sum(1) / weight.sum(1)).squeeze(-1)


def run():
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    rows, values = library(cfg)
    model = Encoder(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    for epoch in range(cfg.epochs):
        losses = []
        for ids, target in shuffled(rows, values, cfg, rng):
            loss = F.mse_loss(model(ids), target)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            losses.append(loss.detach())
        print(f"epoch {epoch}: first {losses[0].item():.4f}, mean {torch.stack(losses).mean().item():.4f}")


if __name__ == "__main__":
    run()
