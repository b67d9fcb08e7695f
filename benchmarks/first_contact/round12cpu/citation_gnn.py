"""Node classification with a mean-aggregating graph network; full batch, edges sorted once."""
import argparse

import torch
from torch import nn


def citation_graph(nodes, degree, classes, gen):
    label = torch.randint(0, classes, (nodes,), generator=gen)
    order = label.argsort()
    src = order.repeat_interleave(degree)
    near = torch.arange(nodes).repeat_interleave(degree) + torch.randint(-60, 61, (nodes * degree,), generator=gen)
    dst = order[near.clamp(0, nodes - 1)]
    x = nn.functional.one_hot(label, classes).float() + 1.5 * torch.randn(nodes, classes, generator=gen)
    features = x @ torch.randn(classes, 64, generator=gen)
    by_target = dst.argsort()  # once, so that the aggregation writes in order
    return features, label, src[by_target], dst[by_target]


class MeanAggregate(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.own, self.near = nn.Linear(cin, cout), nn.Linear(cin, cout, bias=False)

    def forward(self, x, src, dst, inv_degree):
        z = self.near(x)
        gathered = torch.zeros_like(z).index_add(0, dst, z.index_select(0, src))
        return self.own(x) + gathered * inv_degree


class GNN(nn.Module):
    def __init__(self, cin, hidden, classes):
        super().__init__()
        self.convs = nn.ModuleList([MeanAggregate(cin, hidden), MeanAggregate(hidden, classes)])

    def forward(self, x, src, dst, inv_degree):
        for n, conv in enumerate(self.convs):
            x = conv(x, src, dst, inv_degree)
            if n == 0:
                x = torch.relu(x)
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=800)
    args = parser.parse_args()
    torch.manual_seed(2)
    x, label, src, dst = citation_graph(3000, 6, 7, torch.Generator().manual_seed(2))
    inv_degree = torch.bincount(dst, minlength=len(x)).clamp(min=1).float().reciprocal().unsqueeze(1)
    train = torch.rand(len(x)) < 0.3
    train_index, held_index = train.nonzero().squeeze(1), (~train).nonzero().squeeze(1)
    net = GNN(64, 48, 7)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=5e-4, fused=True)
    for epoch in range(1, args.epochs + 1):
        out = net(x, src, dst, inv_degree)
        loss = nn.functional.cross_entropy(out[train_index], label[train_index])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 400 == 0:
            accuracy = (out[held_index].argmax(1) == label[held_index]).float().mean()
            print(f"epoch {epoch}: loss {loss.item():.4f}, held-out accuracy {accuracy.item():.4f}")


main()
