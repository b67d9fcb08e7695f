"""Match product pictures with their captions: two towers, symmetric contrastive loss."""
from __future__ import annotations

import math
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LITE = os.environ.get("SMALL") == "1"
CONTEXT = 32 if LITE else 128
DIM, HEADS, DEPTH = (64, 2, 2) if LITE else (768, 12, 8)
BATCH, STEPS, PATCHES = (8, 30, 9) if LITE else (160, 60, 64)
VOCAB = 8192


class Layer(nn.Module):
    def __init__(self, d: int, h: int) -> None:
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.randn(CONTEXT, DIM) * 0.02)
        self.layers = nn.Sequential(*[Layer(DIM, HEADS) for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(DIM)

    def forward(self, ids: Tensor, last: Tensor) -> Tensor:
        x = self.layers(self.tok(ids) + self.pos[: ids.shape[1]])
        return self.norm(x[torch.arange(len(ids), device=ids.device), last])


class Picture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(768, DIM)
        self.layers = nn.Sequential(*[Layer(DIM, HEADS) for _ in range(max(DEPTH // 4, 1))])

    def forward(self, patches: Tensor) -> Tensor:
        return self.layers(self.embed(patches)).mean(1)


def collate(captions: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    longest = max(len(c) for c in captions)
    ids = np.zeros((len(captions), -(-longest // 8) * 8), dtype=np.int64)
    for row, c in zip(ids, captions):
        row[: len(c)] = c
    last = torch.tensor([len(c) - 1 for c in captions])
    return torch.from_numpy(ids), last


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rng = np.random.default_rng(11)
    top = CONTEXT // 4
    captions = [rng.integers(1, VOCAB, rng.integers(6, top + 1)) for _ in range(4096)]
    text, pic = Text().to(device), Picture().to(device)
    scale = nn.Parameter(torch.tensor(math.log(14.0), device=device))
    opt = torch.optim.AdamW([*text.parameters(), *pic.parameters(), scale], lr=1e-4, fused=True)
    patches = torch.randn(BATCH, PATCHES, 768, device=device, dtype=torch.bfloat16)
    goal = torch.arange(BATCH, device=device)

    for step in range(STEPS):
        pick = rng.integers(0, len(captions), BATCH)
        ids, last = collate([captions[i] for i in pick])
        if device.type == "cuda":
            ids, last = ids.pin_memory(), last.pin_memory()
        ids, last = ids.to(device, non_blocking=True), last.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            t, p = F.normalize(text(ids, last), dim=-1), F.normalize(pic(patches), dim=-1)
            logits = scale.exp() * t @ p.t()
            loss = (F.cross_entropy(logits, goal) + F.cross_entropy(logits.t(), goal)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 19:
            print(step + 1, f"{loss.item():.3f}")


if __name__ == "__main__":
    main()
