"""Sampled-neighbour graph network that predicts links between the users of a social graph."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Opts:
    users: int = 400_000
    feats: int = 256
    hidden: int = 512
    fan1: int = 10
    fan2: int = 10
    batch: int = 12288
    steps: int = 80
    lr: float = 1e-3

    @staticmethod
    def pick():
        if os.environ.get("SMALL") == "1":
            return Opts(users=500, feats=16, hidden=16, fan1=3, fan2=3, batch=16, steps=30)
        return Opts()


class Graph:
    """Fixed-degree adjacency: row u holds u's friends."""

    def __init__(self, o: Opts, device, degree=32):
        self.friends = torch.randint(o.users, (o.users, degree), device=device, dtype=torch.int32)
        self.features = torch.randn(o.users, o.feats, device=device, dtype=torch.bfloat16)
        self.degree = degree

    def sample(self, nodes: torch.Tensor, fan: int) -> torch.Tensor:
        column = torch.randint(self.degree, (nodes.numel(), fan), device=nodes.device)
        return self.friends[nodes.flatten().unsqueeze(1), column].long()


class Mean(nn.Module):
    def __init__(self, inp, out):
        super().__init__()
        self.own, self.near = nn.Linear(inp, out), nn.Linear(inp, out, bias=False)

    def forward(self, own, near):
        return self.own(own) + self.near(near)


class FriendNet(nn.Module):
    def __init__(self, o: Opts):
        super().__init__()
        self.o = o
        self.low, self.high = Mean(o.feats, o.hidden), Mean(o.hidden, o.hidden)

    def forward(self, graph: Graph, nodes: torch.Tensor) -> torch.Tensor:
        ring1 = graph.sample(nodes, self.o.fan1)
        everyone = torch.cat([nodes, ring1.flatten()])
        ring2 = graph.sample(everyone, self.o.fan2)
        near = F.embedding_bag(ring2, graph.features, mode="mean")
        h = F.relu(self.low(graph.features[everyone], near), inplace=True)
        own, ring = h.split([len(nodes), ring1.numel()])
        z = self.high(own, ring.view(len(nodes), self.o.fan1, -1).mean(1))
        return F.normalize(z.float(), dim=-1)


def main():
    o = Opts.pick()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    graph = Graph(o, device)
    net = FriendNet(o).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=o.lr, fused=True)
    truth = torch.arange(o.batch, device=device)
    for step in range(o.steps):
        people = torch.randint(o.users, (o.batch,), device=device)
        known = graph.sample(people, 1).squeeze(1)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            left, right = net(graph, torch.cat([people, known])).chunk(2)
            scores = left @ right.t()
            loss = F.cross_entropy(scores * 20, truth)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
