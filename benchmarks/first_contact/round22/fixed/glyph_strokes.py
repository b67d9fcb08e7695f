"""Sequence model of handwriting: pen strokes, quantised to tokens, predicted one after the other."""
import os
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

torch.set_float32_matmul_precision("high")
tiny = os.environ.get("TINY") == "1"
hp = SimpleNamespace(
    tokens=64 if tiny else 1024,
    length=16 if tiny else 1024,
    width=32 if tiny else 1024,
    heads=4 if tiny else 8,
    blocks=2 if tiny else 10,
    batch=4 if tiny else 16,
    writers=128 if tiny else 8192,
    steps=40 if tiny else 2000,
    every=10 if tiny else 50,
    device="cuda" if torch.cuda.is_available() else "cpu",
)


class Half(nn.Module):
    """One half of a block: a norm, a branch, a residual connection."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def branch(self, x):
        raise NotImplementedError

    def forward(self, x):
        return x + self.branch(self.norm(x))


class Look(Half):
    def __init__(self, width, heads):
        super().__init__(width)
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.o = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def branch(self, x):
        k, v = self.kv(x).chunk(2, -1)
        y = F.scaled_dot_product_attention(self.split(self.q(x)), self.split(k), self.split(v), is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class Work(Half):
    def __init__(self, width):
        super().__init__(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def branch(self, x):
        return self.down(F.gelu(self.up(x)))


class Scribe(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.token = nn.Embedding(hp.tokens, hp.width)
        self.place = nn.Parameter(torch.randn(hp.length, hp.width) * 0.02)
        halves = []
        for _ in range(hp.blocks):
            halves += [Look(hp.width, hp.heads), Work(hp.width)]
        self.halves = nn.ModuleList(halves)
        self.norm = nn.LayerNorm(hp.width)
        self.next = nn.Linear(hp.width, hp.tokens)
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, strokes):
        x = self.token(strokes) + self.place
        for half in self.halves:
            x = half(x)
        return self.next(self.norm(x))


def handwriting(hp, seed=33):
    """Strokes of writers who turn steadily: token = previous + a habit of the writer, sometimes a jump."""
    g = torch.Generator(hp.device).manual_seed(seed)
    shape = (hp.writers, hp.length + 1)
    habit = torch.randint(1, 6, (hp.writers, 1), device=hp.device, generator=g)
    jump = torch.rand(shape, device=hp.device, generator=g) < 0.05
    size = torch.randint(hp.tokens, shape, device=hp.device, generator=g)
    return (torch.where(jump, size, habit)).cumsum(1) % hp.tokens


def sample(pages, hp, seed=34):
    g = torch.Generator(hp.device).manual_seed(seed)
    while True:
        page = pages[torch.randint(len(pages), (hp.batch,), device=hp.device, generator=g)]
        yield page[:, :-1], page[:, 1:]


torch.manual_seed(35)
scribe = Scribe(hp).to(hp.device).train()
optimizer = torch.optim.AdamW(scribe.parameters(), lr=3e-4, weight_decay=0.05, fused=True)
pages = sample(handwriting(hp), hp)
mean = torch.zeros((), device=hp.device)
for step in range(1, hp.steps + 1):
    strokes, following = next(pages)
    with torch.autocast(hp.device, dtype=torch.bfloat16):
        logits = scribe(strokes)
        loss = F.cross_entropy(logits.flatten(0, 1), following.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    mean += loss.detach()
    if step % hp.every == 0:
        print("step", step, "loss", round(mean.item() / hp.every, 4), flush=True)
        mean.zero_()
