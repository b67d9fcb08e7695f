"""Scores multiple-choice questions by the log-probability of the answer letter after the prompt."""
import os
from dataclasses import dataclass
from typing import Iterator

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Shape:
    vocab: int
    dim: int
    heads: int
    depth: int
    length: int
    batch: int
    batches: int


FULL = Shape(vocab=64000, dim=768, heads=12, depth=6, length=512, batch=32, batches=100)
SMALL = Shape(vocab=128, dim=32, heads=2, depth=1, length=16, batch=2, batches=30)


class Backbone(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        self.embed = nn.Embedding(s.vocab, s.dim)
        self.where = nn.Parameter(torch.randn(s.length, s.dim) * 0.02)
        self.norms = nn.ModuleList(nn.LayerNorm(s.dim) for _ in range(2 * s.depth + 1))
        self.mix = nn.ModuleList(nn.Linear(s.dim, 3 * s.dim) for _ in range(s.depth))
        self.join = nn.ModuleList(nn.Linear(s.dim, s.dim) for _ in range(s.depth))
        self.wide = nn.ModuleList(nn.Linear(s.dim, 4 * s.dim) for _ in range(s.depth))
        self.thin = nn.ModuleList(nn.Linear(4 * s.dim, s.dim) for _ in range(s.depth))

    def attend(self, i: int, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.mix[i](x).view(b, t, 3, self.s.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.join[i](y.transpose(1, 2).reshape(b, t, d))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.where
        for i in range(self.s.depth):
            x = x + self.attend(i, self.norms[2 * i](x))
            x = x + self.thin[i](F.gelu(self.wide[i](self.norms[2 * i + 1](x))))
        return self.norms[-1](x)


class LanguageModel(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.backbone = Backbone(s)
        self.unembed = nn.Linear(s.dim, s.vocab, bias=False)

    def next_token(self, ids: Tensor) -> Tensor:
        return self.unembed(self.backbone(ids))[:, -1]  # flaw: unused-logits


class Scorer:
    letters = 4

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    def __call__(self, prompts: Tensor) -> Tensor:
        return F.log_softmax(self.model.next_token(prompts)[:, : self.letters].float(), -1)


def questions(s: Shape, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    g = torch.Generator(device).manual_seed(7)
    for _ in range(s.batches):
        yield (
            torch.randint(s.vocab, (s.batch, s.length), generator=g, device=device),
            torch.randint(Scorer.letters, (s.batch,), generator=g, device=device),
        )


@torch.inference_mode()
def evaluate(s: Shape) -> float:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    scorer = Scorer(LanguageModel(s).to(device, torch.bfloat16).eval())
    right = torch.zeros((), device=device)
    for n, (prompts, answers) in enumerate(questions(s, device), 1):
        right += (scorer(prompts).argmax(1) == answers).sum()
        if n % 25 == 0:
            print(f"{n}/{s.batches}")
    return right.item() / (s.batch * s.batches)


if __name__ == "__main__":
    print("accuracy", round(evaluate(SMALL if os.environ.get("SMALL") else FULL), 4))
