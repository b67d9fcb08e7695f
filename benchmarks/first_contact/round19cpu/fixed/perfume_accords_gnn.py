"""Which accord a molecule smells of: message passing over a batch of molecules of different sizes."""
import torch
from torch import nn
from torch.nn import functional as F


def molecules(count, gen):
    """Random trees with a few rings; the label depends on the atoms' kinds and the degree."""
    graphs = []
    for size in torch.randint(9, 24, (count,), generator=gen).tolist():
        kinds = torch.randint(0, 12, (size,), generator=gen)
        parent = (torch.rand(size - 1, generator=gen) * torch.arange(1, size)).long()
        child = torch.arange(1, size)
        ring = torch.randint(0, size, (2, 2), generator=gen)
        edges = torch.cat([torch.stack([parent, child]), ring], 1)
        edges = torch.cat([edges, edges.flip(0)], 1)
        label = int((kinds < 4).sum() * 3 // size) + 3 * int(ring[0, 0] % 2 == 0)
        graphs.append((kinds, edges, label))
    return graphs


def merge(graphs):
    kinds, edges, owner, labels, start = [], [], [], [], 0
    for number, (k, e, label) in enumerate(graphs):
        kinds.append(k)
        edges.append(e + start)
        owner.append(torch.full((len(k),), number))
        labels.append(label)
        start += len(k)
    return torch.cat(kinds), torch.cat(edges, 1), torch.cat(owner), torch.tensor(labels)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.near = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, edges):
        sent = self.near(x)
        heard = torch.zeros_like(sent).index_add(0, edges[1], sent[edges[0]])
        return x + F.relu(self.norm(self.own(x) + heard))


class Nose(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        self.atom = nn.Embedding(12, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.head = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 6))

    def readout(self, x, owner, count):
        whole = x.new_zeros(count, x.shape[1]).index_add(0, owner, x)
        return whole / torch.bincount(owner, minlength=count)[:, None]

    def forward(self, kinds, edges, owner, count):
        x = self.atom(kinds)
        for layer in self.layers:
            x = layer(x, edges)
        return self.head(self.readout(x, owner, count))


def batches(graphs, size, gen):
    merged = [merge(graphs[at : at + size]) for at in range(0, len(graphs), size)]
    while True:
        for i in torch.randperm(len(merged), generator=gen).tolist():
            yield merged[i]


def main(steps=450, size=100):
    torch.manual_seed(7)
    gen = torch.Generator().manual_seed(7)
    net = Nose()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
    shown = 0.0
    for step, (kinds, edges, owner, labels) in zip(range(1, steps + 1), batches(molecules(1600, gen), size, gen)):
        loss = F.cross_entropy(net(kinds, edges, owner, len(labels)), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shown += loss.item()
        if step % 90 == 0:
            print(f"{step} steps, loss {shown / 90:.4f}")
            shown = 0.0


main()
