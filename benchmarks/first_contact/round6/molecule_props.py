"""Message passing over molecules of different sizes, with one readout for each property."""

import os
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TINY = bool(os.environ.get("SMALL"))
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Molecules(NamedTuple):
    atoms: Tensor
    source: Tensor
    target: Tensor
    counts: Tensor
    owner: Tensor
    props: Tensor
    total: int


def fake_molecules(n, degree, props, seed):
    g = torch.Generator().manual_seed(seed)
    counts = torch.randint(8, 28, (n,), generator=g)
    total = int(counts.sum())
    owner = torch.repeat_interleave(torch.arange(n), counts)
    start = (counts.cumsum(0) - counts)[owner]
    target = torch.arange(total).repeat_interleave(degree)
    pick = (torch.rand(total * degree, generator=g) * counts[owner][target]).long()
    fields = torch.randint(0, 100, (total,), generator=g), start[target] + pick, target, counts, owner
    return Molecules(*(t.to(DEV) for t in fields), torch.randn(n, props, generator=g).to(DEV), total)


class Message(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, mol):
        m = self.edge(torch.cat([h.index_select(0, mol.source), h.index_select(0, mol.target)], -1))
        return self.norm(h + torch.zeros_like(h).index_add_(0, mol.target, m.to(h.dtype)))


def spread(values, mol):
    """One row of every molecule to each of its atoms."""
    return values.repeat_interleave(mol.counts, 0)  # flaw: sync-in-step


def gather(h, mol):
    sums = h.new_zeros(len(mol.counts), h.shape[1]).index_add_(0, mol.owner, h)
    return sums / mol.counts[:, None]


class Readout(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Linear(dim, 32)
        self.out = nn.Sequential(nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, pooled):
        return self.out(F.silu(self.gate(pooled)))


class Net(nn.Module):
    def __init__(self, dim, depth, props):
        super().__init__()
        self.atoms = nn.Embedding(100, dim)
        self.layers = nn.ModuleList(Message(dim) for _ in range(depth))
        self.mix = nn.Linear(dim, dim)
        self.readouts = nn.ModuleList(Readout(dim) for _ in range(props))

    def forward(self, mol):
        h = self.atoms(mol.atoms)
        for layer in self.layers:
            h = layer(h, mol)
        h = F.silu(self.mix(h)).float() * spread(torch.sigmoid(gather(h.float(), mol)), mol)
        pooled = gather(h, mol)
        return torch.cat([r(pooled) for r in self.readouts], 1)


def main():
    torch.manual_seed(0)
    n, dim, depth, props, steps = (4, 16, 1, 2, 30) if TINY else (768, 192, 3, 24, 150)
    pool = [fake_molecules(n, 12, props, s) for s in range(6)]
    net = Net(dim, depth, props).to(DEV)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    total = torch.zeros((), device=DEV)
    for step in range(steps):
        mol = pool[step % len(pool)]
        with torch.autocast(DEV.type, torch.bfloat16):
            guess = net(mol)
        loss = F.smooth_l1_loss(guess.float(), mol.props)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    print(f"mean loss {total.item() / steps:.4f}")


if __name__ == "__main__":
    main()
