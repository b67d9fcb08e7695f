"""GraphSAGE on a synthetic citation graph with a fixed number of sampled neighbours."""
import torch
import torch.nn.functional as F
from torch import nn

config = dict(papers=3000, features=64, hidden=64, topics=8, fanout=10, batch=256, steps=200, lr=5e-3)


def citations(c):
    g = torch.Generator().manual_seed(31)
    topic = torch.randint(c["topics"], (c["papers"],), generator=g)
    centres = torch.randn(c["topics"], c["features"], generator=g)
    feats = centres[topic] + 2.0 * torch.randn(c["papers"], c["features"], generator=g)
    order = topic.argsort()
    rank = order.argsort()
    jitter = torch.randint(-60, 61, (c["papers"], c["fanout"]), generator=g)
    neighbours = order[(rank[:, None] + jitter).clamp(0, c["papers"] - 1)]
    return feats, topic, neighbours


def make_aggregator(neighbours):
    def aggregate(feats, nodes):
        return feats[neighbours[nodes]].mean(dim=1)
    return aggregate


class Sage(nn.Module):
    def __init__(self, c, aggregate):
        super().__init__()
        self.aggregate = aggregate
        self.own = nn.Linear(c["features"], c["hidden"])
        self.around = nn.Linear(c["features"], c["hidden"], bias=False)
        self.top = nn.Linear(c["hidden"], c["topics"])

    def forward(self, feats, nodes):
        h = self.own(feats[nodes]) + self.around(self.aggregate(feats, nodes))
        return self.top(F.relu(h))


def run(c):
    torch.manual_seed(0)
    feats, topic, neighbours = citations(c)
    net = Sage(c, make_aggregator(neighbours))
    opt = torch.optim.Adam(net.parameters(), lr=c["lr"], fused=True)
    g = torch.Generator().manual_seed(1)
    hits = 0
    for _ in range(c["steps"]):
        nodes = torch.randint(c["papers"], (c["batch"],), generator=g)
        out = net(feats, nodes)
        loss = F.cross_entropy(out, topic[nodes])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        hits += int((out.argmax(1) == topic[nodes]).sum())
    return hits / (c["steps"] * c["batch"])


print(f"running accuracy {run(config):.4f}")
