"""Property regression on random molecular graphs with edge-conditioned message passing."""
import os
from collections import namedtuple
from itertools import cycle, islice

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
P = dict(graphs=16, atoms=(4, 9), dim=32, layers=2, batches=2, steps=10) if TINY else \
    dict(graphs=1024, atoms=(40, 88), dim=256, layers=4, batches=12, steps=300)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Batch = namedtuple("Batch", "kind src dst owner sizes count target")


def synth(rng):
    sizes = rng.integers(*P["atoms"], size=P["graphs"])
    total = int(sizes.sum())
    owner = np.repeat(np.arange(P["graphs"]), sizes)
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    local = np.arange(total) - start
    size = np.repeat(sizes, sizes)
    pairs = [(np.arange(total), start + (local + k) % size) for k in (1, 2, 3)]
    a = np.concatenate([p[0] for p in pairs] + [p[1] for p in pairs])
    b = np.concatenate([p[1] for p in pairs] + [p[0] for p in pairs])
    kind = rng.integers(0, 16, total)
    target = np.bincount(owner, weights=(kind % 3), minlength=P["graphs"]) / sizes
    t = lambda x, d=torch.long: torch.as_tensor(x, dtype=d, device=dev)
    return Batch(t(kind), t(a), t(b), t(owner), sizes.tolist(), t(sizes, torch.float32), t(target, torch.float32))


class Message(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.pre = nn.Linear(dim, dim)
        self.update = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))

    def forward(self, h, src, dst):
        m = self.pre(h)
        agg = torch.zeros_like(m).index_add_(0, dst, m.index_select(0, src))
        return h + self.update(agg)


class PoolingMixin:
    def pool(self, h, batch):
        parts = [atoms.mean(dim=0) for atoms in h.split(batch.sizes)]  # flaw: python-loop-over-tensor
        return torch.stack(parts)  # flaw: python-loop-over-tensor


class MoleculeNet(PoolingMixin, nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.embed = nn.Embedding(16, dim)
        self.layers = nn.ModuleList(Message(dim) for _ in range(layers))
        self.out = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, batch):
        h = self.embed(batch.kind)
        for layer in self.layers:
            h = layer(h, batch.src, batch.dst)
        return self.out(self.pool(h.float(), batch)).squeeze(-1).float()


def main():
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    rng = np.random.default_rng(1)
    batches = [synth(rng) for _ in range(P["batches"])]
    net = MoleculeNet(P["dim"], P["layers"]).to(dev)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=dev.type == "cuda")
    ema = torch.zeros((), device=dev)
    for batch in islice(cycle(batches), P["steps"]):
        with torch.autocast(dev.type, torch.bfloat16, enabled=dev.type == "cuda"):
            guess = net(batch)
        loss = F.mse_loss(guess, batch.target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ema.mul_(0.9).add_(loss.detach(), alpha=0.1)
    print(f"ema {ema.item():.6f}")


main()
