"""Tag musical sections (verse, chorus, bridge...) from log-mel frames, with a timing report per stage."""
import os
import time
from collections import defaultdict
from contextlib import contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
CUDA = torch.cuda.is_available()


class Stages:
    def __init__(self):
        self.spent = defaultdict(float)

    @contextmanager
    def __call__(self, name):
        if CUDA:
            torch.cuda.synchronize()  # flaw: synchronize-in-step
        begin = time.perf_counter()
        yield
        if CUDA:
            torch.cuda.synchronize()  # flaw: synchronize-in-step
        self.spent[name] += time.perf_counter() - begin

    def report(self):
        whole = sum(self.spent.values())
        for name, sec in sorted(self.spent.items(), key=lambda kv: -kv[1]):
            print(f"{name:>10} {sec:8.3f} s {100 * sec / whole:5.1f} %")


stages = Stages()


class Section(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.a, self.b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.wide, self.narrow = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def attend(self, x):
        q, k, v = self.qkv(self.a(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    def forward(self, x):
        with stages("attention"):
            x = x + self.attend(x)
        with stages("mlp"):
            x = x + self.narrow(F.gelu(self.wide(self.b(x))))
        return x


class Tagger(nn.Module):
    def __init__(self, mels, dim, depth, heads, tags):
        super().__init__()
        self.inp = nn.Linear(mels, dim)
        self.sections = nn.ModuleList([Section(dim, heads) for _ in range(depth)])
        self.out = nn.Linear(dim, tags)

    def forward(self, mel):
        with stages("input"):
            x = self.inp(mel)
        for s in self.sections:
            x = s(x)
        with stages("output"):
            return self.out(x)


def main():
    if SMALL:
        batch, frames, dim, depth, heads, steps = 2, 32, 32, 2, 2, 30
    else:
        batch, frames, dim, depth, heads, steps = 40, 512, 384, 16, 6, 80
    mels, tags = 128, 16
    dev = torch.device("cuda" if CUDA else "cpu")
    torch.manual_seed(5)
    model = Tagger(mels, dim, depth, heads, tags).to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    songs = torch.randn(batch * 8, frames, mels, device=dev)
    truth = songs[..., :tags].argmax(-1)
    for step in range(steps):
        at = torch.randint(songs.shape[0], (batch,), device=dev)
        with torch.autocast(dev.type, torch.bfloat16):
            loss = F.cross_entropy(model(songs[at]).flatten(0, 1), truth[at].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 40 == 39:
            print(f"step {step + 1} loss {loss.item():.3f}")
    stages.report()


if __name__ == "__main__":
    main()
