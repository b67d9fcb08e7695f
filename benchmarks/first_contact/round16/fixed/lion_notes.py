# Music transformer over note events, trained with Lion.
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = "TINY" in os.environ and os.environ["TINY"] == "1"
D, H, DEPTH, LEN, BATCH, STEPS = (32, 2, 3, 32, 2, 6) if TINY else (512, 8, 24, 512, 24, 450)
NOTES = 512


class SignMomentum:
    """Lion (Chen et al. 2023)."""

    def __init__(self, module, lr=1e-4, betas=(0.9, 0.99), decay=0.01):
        self.weights = [w for w in module.parameters() if w.requires_grad]
        self.memory = [torch.zeros_like(w) for w in self.weights]
        self.lr, self.betas, self.decay = lr, betas, decay

    def clear(self):
        for w in self.weights:
            w.grad = None

    @torch.no_grad()
    def advance(self):
        fast, slow = self.betas
        grads = [w.grad for w in self.weights]
        direction = torch._foreach_lerp(self.memory, grads, 1 - fast)
        torch._foreach_sign_(direction)
        torch._foreach_mul_(self.weights, 1 - self.lr * self.decay)
        torch._foreach_sub_(self.weights, direction, alpha=self.lr)
        torch._foreach_lerp_(self.memory, grads, 1 - slow)


class Phrase(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (H, -1)).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.n2(x))


class Composer(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(NOTES, D)
        self.beat = nn.Parameter(0.02 * torch.randn(LEN, D))
        self.phrases = nn.Sequential(*(Phrase() for _ in range(DEPTH)))
        self.end = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, NOTES))

    def forward(self, notes):
        return self.end(self.phrases(self.note(notes) + self.beat))


def songs(device):
    book = torch.randint(NOTES, (BATCH * 8, LEN + 1), device=device)
    while True:
        yield from book.split(BATCH)


torch.manual_seed(2)
device = "cuda" if torch.cuda.is_available() else "cpu"
composer = Composer().to(device)
lion = SignMomentum(composer)
history = []
for step, song in zip(range(STEPS), songs(device)):
    with torch.autocast(device, dtype=torch.bfloat16):
        guess = composer(song[:, :-1])
        loss = F.cross_entropy(guess.flatten(0, 1).float(), song[:, 1:].flatten())
    loss.backward()
    lion.advance()
    lion.clear()
    history.append(loss.detach())
curve = torch.stack(history)
print("loss", [round(v, 3) for v in curve[:: max(1, STEPS // 5)].tolist()])
