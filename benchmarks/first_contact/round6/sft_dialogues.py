"""Supervised fine-tuning on dialogues that are kept as plain Python records."""
import gc
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = bool(os.environ.get("SMALL"))


class Hook:
    def before(self, trainer): ...
    def after(self, trainer, step): ...


class Progress(Hook):
    def after(self, trainer, step):
        if step % 25 == 0:
            print(f"step {step} loss {trainer.loss.item():.4f}")


class Housekeeping(Hook):
    def before(self, trainer):
        gc.collect()
        gc.disable()

    def after(self, trainer, step):
        gc.collect()  # flaw: gc-pause-in-step


class Dialogues:
    def __init__(self, n, vocab, length):
        r = random.Random(0)
        self.vocab, self.length = vocab, length
        self.records = [
            {"id": i, "turns": [{"role": k % 2, "first": r.randrange(vocab)} for k in range(4)]} for i in range(n)
        ]
        self.rng = r

    def batch(self, size):
        firsts = [[t["first"] for t in rec["turns"]] for rec in self.rng.sample(self.records, size)]
        seeds = torch.tensor(firsts)
        return (seeds.repeat(1, self.length // 4 + 1) * 31 + torch.arange(4 * (self.length // 4 + 1))) % self.vocab


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        q, k, v = (z.unflatten(-1, (-1, 32)).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.ff(self.n2(x))


class Trainer:
    def __init__(self, data, hooks, dim, depth, batch, steps):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        layers = [Layer(dim) for _ in range(depth)]
        self.model = nn.Sequential(nn.Embedding(data.vocab, dim), *layers, nn.LayerNorm(dim), nn.Linear(dim, data.vocab))
        self.model.to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=2e-4, fused=True)
        self.data, self.hooks, self.size, self.steps = data, hooks, batch, steps

    def load(self):
        ids = self.data.batch(self.size)
        if self.device.type == "cuda":
            ids = ids.pin_memory()
        return ids.to(self.device, non_blocking=True)

    def fit(self):
        for h in self.hooks:
            h.before(self)
        for step in range(self.steps):
            ids = self.load()
            with torch.autocast(self.device.type, torch.bfloat16):
                logits = self.model(ids[:, :-1])
                self.loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            self.opt.zero_grad()
            self.loss.backward()
            self.opt.step()
            for h in self.hooks:
                h.after(self, step)


if __name__ == "__main__":
    torch.manual_seed(0)
    if SMALL:
        Trainer(Dialogues(500, 100, 16), [Progress(), Housekeeping()], 32, 1, 2, 30).fit()
    else:
        Trainer(Dialogues(120_000, 8192, 512), [Progress(), Housekeeping()], 512, 4, 24, 100).fit()
