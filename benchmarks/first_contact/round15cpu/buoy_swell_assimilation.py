"""Corrects gridded swell heights from scattered buoys by cross attention."""
import os
from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F

TINY = bool(os.environ.get("TINY"))


@dataclass(frozen=True)
class Setup:
    cells: int = 64 if TINY else 640
    buoys: int = 48 if TINY else 512
    width: int = 64
    heads: int = 4
    fleet: int = 2
    rounds: int = 4 if TINY else 160


class HeadsMixin:
    def apart(self, z):
        return z.unflatten(-1, (self.heads, -1))

    def consult(self, ask, offers, news, silent):
        affinity = torch.einsum("bqhe,bkhe->bhqk", ask, offers).mul(ask.size(-1) ** -0.5)  # flaw: hand-written-attention
        affinity = affinity + silent[:, None, None, :]  # flaw: hand-written-attention
        share = torch.softmax(affinity, dim=3)  # flaw: hand-written-attention
        return torch.einsum("bhqk,bkhe->bqhe", share, news).flatten(2)  # flaw: hand-written-attention


class BuoyReader(HeadsMixin, nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ask = nn.Linear(width, width)
        self.tell = nn.Linear(width, 2 * width)
        self.back = nn.Linear(width, width)
        self.calm = nn.LayerNorm(width)

    def forward(self, cells, buoys, silent):
        offers, news = self.tell(buoys).chunk(2, dim=-1)
        found = self.consult(self.apart(self.ask(self.calm(cells))), self.apart(offers), self.apart(news), silent)
        return cells + self.back(found)


class Assimilator(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.cell = nn.Linear(5, s.width)
        self.buoy = nn.Linear(5, s.width)
        self.readers = nn.ModuleList(BuoyReader(s.width, s.heads) for _ in range(2))
        self.height = nn.Linear(s.width, 1)

    def forward(self, cells, buoys, silent):
        c, b = self.cell(cells), self.buoy(buoys)
        for reader in self.readers:
            c = reader(c, b, silent)
        return self.height(c).squeeze(-1)


def seas(s):
    g = torch.Generator().manual_seed(11)
    for _ in range(s.rounds):
        cells = torch.randn(s.fleet, s.cells, 5, generator=g)
        buoys = torch.randn(s.fleet, s.buoys, 5, generator=g)
        down = torch.rand(s.fleet, s.buoys, generator=g) < 0.1
        silent = torch.zeros(s.fleet, s.buoys).masked_fill_(down, float("-inf"))
        yield cells, buoys, silent, cells.sin().sum(-1)


def main():
    torch.manual_seed(4)
    s = Setup()
    net = Assimilator(s)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for number, (cells, buoys, silent, truth) in enumerate(seas(s)):
        opt.zero_grad(set_to_none=True)
        miss = F.smooth_l1_loss(net(cells, buoys, silent), truth)
        miss.backward()
        opt.step()
        if number % 25 == 0:
            print(number, f"{miss.item():.4f}")
    print("last", f"{miss.item():.4f}")


if __name__ == "__main__":
    main()
