"""Ranks variants of an antibody by the pseudo likelihood under a sequence model with fixed weights."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
L, W, DEPTH, HEADS, BATCH, ROUNDS = (24, 32, 2, 4, 4, 3) if TINY else (256, 768, 12, 12, 128, 600)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(W), nn.LayerNorm(W)])
        self.qkv, self.proj = nn.Linear(W, 3 * W), nn.Linear(W, W)
        self.inner, self.outer = nn.Linear(W, 4 * W), nn.Linear(4 * W, W)

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, W // HEADS)).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.outer(F.gelu(self.inner(self.norms[1](x))))


class AntibodyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(25, W)
        self.places = nn.Parameter(torch.randn(L, W) * 0.02)
        self.trunk = nn.Sequential(*[Mixer() for _ in range(DEPTH)])
        self.head = nn.Sequential(nn.LayerNorm(W), nn.Linear(W, 25))

    def forward(self, letters):
        return self.head(self.trunk(self.letters(letters) + self.places))


class Ranker:
    def __init__(self, model, wild_type):
        self.model = model.eval()
        self.wild_type = wild_type

    def variants(self, count):
        """Three random exchanges in each copy of the wild type."""
        rows = self.wild_type.expand(count, -1).clone()
        where = torch.randint(L, (count, 3), device=rows.device)
        return rows.scatter_(1, where, torch.randint(20, (count, 3), device=rows.device))

    @torch.inference_mode()
    def score(self, letters):
        logits = self.model(letters)
        likely = -F.cross_entropy(logits.flatten(0, 1).float(), letters.flatten(), reduction="none")
        return likely.view(letters.shape).sum(1)

    def search(self, rounds):
        best = torch.full((16 if not TINY else 2,), -float("inf"), device=self.wild_type.device)
        for _ in range(rounds):
            scores = self.score(self.variants(BATCH))
            best = torch.cat([best, scores]).topk(len(best)).values
        return best


torch.manual_seed(12)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = AntibodyModel().to(device, torch.bfloat16)
ranker = Ranker(model, torch.randint(20, (1, L), device=device))
for place, value in enumerate(ranker.search(ROUNDS).tolist()[:5], 1):
    print(place, f"{value:.2f}")
