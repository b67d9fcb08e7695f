"""Glass-transition temperature of polymers from monomer graphs: message passing and a per-graph readout."""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclasses.dataclass
class GraphBatch:
    atoms: Tensor
    source: Tensor
    target: Tensor
    owner: Tensor
    goal: Tensor

    @property
    def n_graphs(self) -> int:
        return len(self.goal)


def random_monomers(n_graphs: int, gen: torch.Generator) -> GraphBatch:
    sizes = torch.randint(18, 34, (n_graphs,), generator=gen)
    owner = torch.repeat_interleave(torch.arange(n_graphs), sizes)
    atoms = torch.randint(12, (len(owner),), generator=gen)
    first = sizes.cumsum(0) - sizes
    place = torch.arange(len(owner)) - first[owner]
    chain = torch.arange(len(owner))[place > 0]
    ring = torch.arange(len(owner))[place >= 6]
    a = torch.cat([chain, chain - 1, ring, ring - 5])
    b = torch.cat([chain - 1, chain, ring - 5, ring])
    stiff = torch.zeros(n_graphs).index_add_(0, owner, (atoms < 4).float())
    return GraphBatch(atoms, a, b, owner, 3 * (stiff / sizes - 1 / 3))


class MonomerConv(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.send = nn.Linear(width, width, bias=False)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        incoming = torch.zeros_like(h).index_add_(0, batch.target, self.send(h).index_select(0, batch.source))
        return F.relu(self.own(h) + incoming)


class MeanReadout(nn.Module):
    """Mean of the atoms of each graph."""

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        rows = []  # flaw: python-loop-over-tensor
        for g in range(batch.n_graphs):  # flaw: python-loop-over-tensor
            rows.append(h[batch.owner == g].mean(dim=0))  # flaw: python-loop-over-tensor
        return torch.stack(rows)  # flaw: python-loop-over-tensor


class GlassNet(nn.Module):
    def __init__(self, width: int = 96, rounds: int = 3):
        super().__init__()
        self.embed = nn.Embedding(12, width)
        self.convs = nn.ModuleList([MonomerConv(width) for _ in range(rounds)])
        self.readout = MeanReadout()
        self.regress = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, batch: GraphBatch) -> Tensor:
        h = self.embed(batch.atoms)
        for conv in self.convs:
            h = conv(h, batch)
        return self.regress(self.readout(h, batch)).squeeze(1)


def main(updates: int = 600, n_graphs: int = 64) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(14)
    gen = torch.Generator().manual_seed(15)
    pool = [random_monomers(n_graphs, gen) for _ in range(24)]
    model = GlassNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for update in range(1, updates + 1):
        batch = pool[update % len(pool)]
        loss = F.mse_loss(model(batch), batch.goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 100 == 0:
            print(f"update {update}: mse {loss.item():.5f}")


if __name__ == "__main__":
    main()
