"""Full-batch GraphSAGE on a regular citation-like graph."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


class NeighbourMean(torch.autograd.Function):
    """Mean over the neighbours. The graph is undirected and regular, so the product is its own transpose."""

    @staticmethod
    def forward(ctx, x, neighbours):
        ctx.save_for_backward(neighbours)
        return F.embedding_bag(neighbours, x, mode="mean")

    @staticmethod
    def backward(ctx, grad):
        (neighbours,) = ctx.saved_tensors
        return F.embedding_bag(neighbours, grad.contiguous(), mode="mean"), None


def regular_graph(nodes, pairs, gen):
    """Each of `pairs` random permutations adds an edge v - p(v): 2 * pairs neighbours per node."""
    columns, device = [], gen.device
    index = torch.arange(nodes, device=device)
    for _ in range(pairs):
        p = torch.randperm(nodes, device=device, generator=gen)
        inverse = torch.empty_like(p).scatter_(0, p, index)
        columns += [p, inverse]
    return torch.stack(columns, dim=1).to(torch.int32)


class Mixer(nn.Module):
    """Everything between two neighbour means: both linear maps, norm, activation."""

    def __init__(self, cin, cout):
        super().__init__()
        self.own, self.near = nn.Linear(cin, cout), nn.Linear(cin, cout, bias=False)
        self.norm = nn.LayerNorm(cout)

    def forward(self, x, mean):
        return F.relu(self.norm(self.own(x) + self.near(mean)).to(torch.bfloat16))


class SAGE(nn.Module):
    def __init__(self, features, width, layers, classes):
        super().__init__()
        sizes = [features] + [width] * layers
        self.mixers = nn.ModuleList(Mixer(a, b) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Linear(width, classes)

    def forward(self, features, features_mean, neighbours):
        x = self.mixers[0](features, features_mean)
        for mixer in self.mixers[1:]:
            x = mixer(x, NeighbourMean.apply(x, neighbours))
        return x


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=262_144 if cuda else 256)
    ap.add_argument("--pairs", type=int, default=8 if cuda else 2)
    ap.add_argument("--features", type=int, default=256 if cuda else 16)
    ap.add_argument("--width", type=int, default=512 if cuda else 16)
    ap.add_argument("--layers", type=int, default=3)
    ap.add_argument("--classes", type=int, default=40)
    ap.add_argument("--epochs", type=int, default=120 if cuda else 4)
    args = ap.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    gen = torch.Generator(device).manual_seed(1)

    neighbours = regular_graph(args.nodes, args.pairs, gen)
    label = torch.randint(args.classes, (args.nodes,), device=device, generator=gen)
    centres = torch.randn(args.classes, args.features, device=device, generator=gen)
    noise = torch.randn(args.nodes, args.features, device=device, generator=gen)
    features = (0.2 * centres[label] + noise).to(torch.bfloat16)
    # the raw features do not change, so their neighbour mean is needed only once
    features_mean = F.embedding_bag(neighbours, features, mode="mean")
    train = torch.randperm(args.nodes, device=device, generator=gen)[:args.nodes // 2]
    train_label = label[train]

    model = SAGE(args.features, args.width, args.layers, args.classes).to(device)
    if cuda:
        for mixer in model.mixers:
            mixer.compile()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    losses = []
    for epoch in range(args.epochs):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            x = model(features, features_mean, neighbours)
            loss = F.cross_entropy(model.head(x.index_select(0, train)), train_label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    print(f"loss {losses[0].item():.4f} -> {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
