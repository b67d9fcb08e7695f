"""World model of a mobile robot: predicts the next token of interleaved camera, pose and action tokens."""
import abc
import argparse
import types

import torch
import torch.nn.functional as F
from torch import nn


class History(nn.Module):
    """Attention of each token to the ones before it."""

    def __init__(self, dim, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.history = History(dim, heads, context)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.history(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class WorldModel(nn.Module):
    def __init__(self, codes, dim, heads, layers, context):
        super().__init__()
        self.codes = nn.Embedding(codes, dim)
        self.slots = nn.Embedding(context, dim)
        self.register_buffer("order", torch.arange(context))
        self.layers = nn.ModuleList(Layer(dim, heads, context) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.predict = nn.Linear(dim, codes, bias=False)

    def forward(self, tokens):
        x = (self.codes(tokens) + self.slots(self.order[:tokens.shape[1]])).to(torch.bfloat16)
        for layer in self.layers:
            x = layer(x)
        return self.predict(self.norm(x))


class Task(abc.ABC):
    @abc.abstractmethod
    def batch(self, step): ...

    @abc.abstractmethod
    def loss(self, model, batch): ...


class NextToken(Task):
    def __init__(self, codes, drives, context, device):
        gen = torch.Generator(device).manual_seed(66)
        steps = torch.randint(0, 3, (4, drives, context + 1), generator=gen, device=device)
        self.tokens = steps.cumsum(2) % codes

    def batch(self, step):
        return self.tokens[step % len(self.tokens)]

    def loss(self, model, batch):
        logits = model(batch[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def options():
    gpu = torch.cuda.is_available()
    p = argparse.ArgumentParser()
    p.add_argument("--preset", choices=["base", "tiny"], default="base" if gpu else "tiny")
    chosen = p.parse_args().preset
    sizes = {"base": (1024, 768, 12, 4, 2048, 16, 120), "tiny": (32, 32, 2, 2, 24, 2, 4)}[chosen]
    names = ("codes", "dim", "heads", "layers", "context", "drives", "steps")
    return types.SimpleNamespace(**dict(zip(names, sizes)), device="cuda" if gpu else "cpu")


def main():
    o = options()
    torch.manual_seed(65)
    model = WorldModel(o.codes, o.dim, o.heads, o.layers, o.context).to(o.device)
    task = NextToken(o.codes, o.drives, o.context, o.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    losses = torch.zeros(o.steps, device=o.device)
    for step in range(o.steps):
        with torch.autocast(o.device, torch.bfloat16):
            loss = task.loss(model, task.batch(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    print("loss: first %.4f, last %.4f" % (losses[0].item(), losses[-1].item()))


if __name__ == "__main__":
    main()
