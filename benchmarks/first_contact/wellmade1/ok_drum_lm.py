"""Language model over drum grooves. `python ok_drum_lm.py [preset]`"""
import dataclasses
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {}


def preset(cls):
    cls = dataclasses.dataclass(cls)
    PRESETS[cls.__name__.lower()] = cls
    return cls


@preset
class Practice:
    vocab: int = 256
    width: int = 128
    heads: int = 4
    layers: int = 2
    context: int = 64
    batch: int = 8
    steps: int = 900
    lr: float = 2e-3
    warm: int = 60
    evaluate_every: int = 150


@preset
class Concert(Practice):
    width: int = 256
    heads: int = 8
    layers: int = 6
    context: int = 256
    batch: int = 32
    steps: int = 20_000
    lr: float = 6e-4


def grooves(vocab, length, seed):
    """Patterns of 16 hits, repeated with fills, in an order of their own."""
    rng = torch.Generator().manual_seed(seed)
    patterns = torch.randint(2, vocab, (40, 16), generator=rng)
    follows = torch.randint(0, 40, (40, 3), generator=rng)
    bars = length // 16
    choice = torch.randint(0, 3, (bars,), generator=rng).tolist()
    table, at, order = follows.tolist(), 0, []
    for c in choice:
        order.append(at)
        at = table[at][c]
    song = patterns[torch.tensor(order)].flatten()
    fill = torch.rand(song.shape, generator=rng) < 0.06
    return torch.where(fill, torch.randint(2, vocab, song.shape, generator=rng), song)


class Corpus:
    def __init__(self, tokens, context, batch):
        self.windows = tokens.unfold(0, context + 1, 1)
        self.batch = batch

    def sample(self):
        w = self.windows[torch.randint(0, len(self.windows), (self.batch,))]
        return w[:, :-1], w[:, 1:]

    def sweep(self, batch):
        for w in self.windows[:: self.windows.shape[1] - 1].split(batch):
            yield w[:, :-1], w[:, 1:]


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.norm1, self.norm2 = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width, bias=False)
        self.proj = nn.Linear(cfg.width, cfg.width, bias=False)
        self.up, self.down = nn.Linear(cfg.width, 4 * cfg.width), nn.Linear(4 * cfg.width, cfg.width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.norm2(x)), inplace=True))


class Drummer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.hit = nn.Embedding(cfg.vocab, cfg.width)
        self.beat = nn.Parameter(torch.zeros(cfg.context, cfg.width))
        self.blocks = nn.Sequential(*(Block(cfg) for _ in range(cfg.layers)))
        self.norm = nn.LayerNorm(cfg.width)
        nn.init.normal_(self.hit.weight, std=0.05)
        nn.init.normal_(self.beat, std=0.02)

    def forward(self, tokens):
        x = self.hit(tokens) + self.beat[: tokens.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.hit.weight)


def nll(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


@torch.inference_mode()
def evaluate(model, corpus, batch=16):
    losses, weights = [], []
    for tokens, targets in corpus.sweep(batch):
        losses.append(nll(model, tokens, targets))
        weights.append(float(len(tokens)))
    weight = torch.tensor(weights)
    return float(torch.stack(losses) @ weight / weight.sum())


def main(name="practice"):
    cfg = PRESETS[name]()
    torch.manual_seed(17)
    song = grooves(cfg.vocab, 120_000, seed=2)
    train, held = (Corpus(part, cfg.context, cfg.batch) for part in (song[:-6000], song[-6000:]))
    model = Drummer(cfg)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=cfg.lr, betas=(0.9, 0.95), fused=True)
    ramp = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / cfg.warm))
    seen, mark = torch.zeros(()), time.perf_counter()
    for step in range(1, cfg.steps + 1):
        loss = nll(model, *train.sample())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ramp.step()
        seen += loss.detach()
        if step % cfg.evaluate_every == 0:
            pace = 1000 * (time.perf_counter() - mark) / cfg.evaluate_every
            print(f"{step:5d}  train {seen.item() / cfg.evaluate_every:.3f}  held {evaluate(model, held):.3f}  {pace:.1f} ms/step")
            seen.zero_()
            mark = time.perf_counter()


if __name__ == "__main__":
    main(*sys.argv[1:])
