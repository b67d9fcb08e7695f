"""Energy regression on fully connected molecular graphs; message passing blocks built from one base class."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass
class Hyper:
    atoms: int = 20
    kinds: int = 6
    dim: int = 48
    depth: int = 4
    batch: int = 16
    steps: int = 620
    recompute: bool = True  # flaw: needless-checkpointing


class Block(nn.Module):
    recompute = False

    def update(self, h, edge):
        raise NotImplementedError

    def forward(self, h, edge):
        if self.recompute and self.training:
            return checkpoint(self.update, h, edge, use_reentrant=False)
        return self.update(h, edge)


class Message(Block):
    def __init__(self, dim):
        super().__init__()
        self.source, self.sink = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.edge = nn.Linear(16, dim, bias=False)
        self.mix = nn.Sequential(nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.out = nn.Linear(dim, dim)

    def update(self, h, edge):
        pair = self.source(h).unsqueeze(2) + self.sink(h).unsqueeze(1) + self.edge(edge)
        return h + self.out(self.mix(pair).mean(2))


class EnergyNet(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.kind = nn.Embedding(hp.kinds, hp.dim)
        self.blocks = nn.ModuleList(Message(hp.dim) for _ in range(hp.depth))
        for block in self.blocks:
            block.recompute = hp.recompute
        self.readout = nn.Sequential(nn.Linear(hp.dim, hp.dim), nn.SiLU(), nn.Linear(hp.dim, 1))
        self.register_buffer("centres", torch.linspace(0.0, 4.0, 16))

    def forward(self, kind, position):
        distance = torch.cdist(position, position).unsqueeze(-1)
        edge = torch.exp(-(distance - self.centres).square() * 4.0)
        h = self.kind(kind)
        for block in self.blocks:
            h = block(h, edge)
        return self.readout(h).sum((1, 2))


def molecules(hp):
    kind = torch.randint(hp.kinds, (hp.batch, hp.atoms))
    position = torch.randn(hp.batch, hp.atoms, 3)
    energy = torch.exp(-torch.cdist(position, position)).sum((1, 2)) / hp.atoms
    return kind, position, energy


def main(hp):
    torch.manual_seed(41)
    net = EnergyNet(hp)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    total = torch.zeros(())
    for _ in range(hp.steps):
        kind, position, energy = molecules(hp)
        loss = nn.functional.huber_loss(net(kind, position), energy)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    return float(total) / hp.steps


if __name__ == "__main__":
    print(f"mean huber {main(Hyper()):.4f}")
