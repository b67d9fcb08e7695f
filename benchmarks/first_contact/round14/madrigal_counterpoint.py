"""A causal transformer over four-voice counterpoint, one token per voice and beat (gated feed-forward blocks)."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"


class GatedFeedForward(nn.Module):
    def __init__(self, dim, ratio=8 / 3):
        super().__init__()
        inner = int(dim * ratio)  # flaw: misaligned-matmul
        self.gate = nn.Linear(dim, inner, bias=False)
        self.up = nn.Linear(dim, inner, bias=False)
        self.down = nn.Linear(inner, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Voices(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Measure(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.voices, self.ff = Voices(dim, heads), GatedFeedForward(dim)

    def forward(self, x):
        x = x + self.voices(self.n1(x))
        return x + self.ff(self.n2(x))


class Madrigal(nn.Module):
    def __init__(self, notes, dim, depth, beats):
        super().__init__()
        self.note = nn.Embedding(notes, dim)
        self.beat = nn.Parameter(torch.zeros(beats, dim))
        self.measures = nn.Sequential(*[Measure(dim, max(1, dim // 64)) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, notes, bias=False)

    def forward(self, notes):
        return self.head(self.norm(self.measures(self.note(notes) + self.beat[: notes.shape[1]])))


def scores(count, batch, beats, notes, device):
    rng = torch.Generator(device=device).manual_seed(11)
    for _ in range(count):
        steps = torch.randint(-3, 4, (batch, beats + 1), generator=rng, device=device)
        yield steps.cumsum(1).remainder(notes)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=128 if TINY else 1024)
    p.add_argument("--depth", type=int, default=2 if TINY else 10)
    p.add_argument("--batch", type=int, default=2 if TINY else 16)
    p.add_argument("--beats", type=int, default=32 if TINY else 1024)
    p.add_argument("--steps", type=int, default=4 if TINY else 120)
    a = p.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = Madrigal(128, a.dim, a.depth, a.beats).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95), fused=True)
    last = []
    for score in scores(a.steps, a.batch, a.beats, 128, device):
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(score[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), score[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        last.append(loss.detach())
    print("first %.3f last %.3f" % (last[0].item(), torch.stack(last[-3:]).mean().item()))


if __name__ == "__main__":
    main()
