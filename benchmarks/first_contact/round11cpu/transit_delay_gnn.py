"""Spreads delays over a transit network with message passing; the whole network is one graph."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NeighbourMean(torch.autograd.Function):
    """Product with a sparse matrix whose transpose is at hand, so that backward need not make it."""

    @staticmethod
    def forward(ctx, matrix: Tensor, transposed: Tensor, state: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ state

    @staticmethod
    def backward(ctx, grad: Tensor):
        return None, None, ctx.transposed @ grad


@dataclass
class Network:
    stops: int
    matrix: Tensor
    transposed: Tensor

    @classmethod
    def ring_roads(cls, stops: int, shortcuts: int, gen: torch.Generator) -> "Network":
        around = torch.arange(stops)
        jump_a = torch.randint(stops, (shortcuts,), generator=gen)
        jump_b = torch.randint(stops, (shortcuts,), generator=gen)
        origin = torch.cat([around, (around + 1) % stops, jump_a, jump_b])
        destination = torch.cat([(around + 1) % stops, around, jump_b, jump_a])
        share = 1.0 / torch.bincount(destination, minlength=stops)[destination]
        square = torch.sparse_coo_tensor(torch.stack([destination, origin]), share, (stops, stops)).coalesce()
        return cls(stops, square.to_sparse_csr(), square.t().coalesce().to_sparse_csr())

    def mean(self, state: Tensor) -> Tensor:
        return NeighbourMean.apply(self.matrix, self.transposed, state)


class Spread(nn.Module):
    """Each stop sees its own state and the mean of the states of its neighbours."""

    def __init__(self, width: int):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.send = nn.Linear(width, width, bias=False)

    def forward(self, state: Tensor, network: Network) -> Tensor:
        return F.relu(self.own(state) + network.mean(self.send(state)))


class DelayNet(nn.Module):
    def __init__(self, inputs: int, width: int, rounds: int):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.rounds = nn.ModuleList([Spread(width) for _ in range(rounds)])
        self.leave = nn.Linear(width, 1)

    def forward(self, features: Tensor, network: Network) -> Tensor:
        state = F.relu(self.enter(features))
        for spread in self.rounds:
            state = spread(state, network)
        return self.leave(state).squeeze(1)


@torch.no_grad()
def days(network: Network, n: int, gen: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    record = []
    for _ in range(n):
        features = torch.randn(network.stops, 12, generator=gen)
        delay = features[:, 0].clamp(min=0)
        for _ in range(2):
            delay = 0.5 * delay + 0.5 * (network.matrix @ delay.unsqueeze(1)).squeeze(1)
        record.append((features, delay))
    return record


def main(updates: int = 800) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(103)
    gen = torch.Generator().manual_seed(104)
    network = Network.ring_roads(stops=2000, shortcuts=3000, gen=gen)
    record = days(network, 20, gen)
    model = DelayNet(12, width=96, rounds=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    for update in range(1, updates + 1):
        features, delay = record[update % len(record)]
        loss = F.mse_loss(model(features, network), delay)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 200 == 0:
            print(f"update {update}: squared error {loss.item():.5f}")


if __name__ == "__main__":
    main()
