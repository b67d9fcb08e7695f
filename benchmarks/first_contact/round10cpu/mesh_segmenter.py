"""Graph network on a sparse mesh: neighbours by index, messages summed with index_add."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def grid_mesh(side):
    ids = torch.arange(side * side).view(side, side)
    right = torch.stack([ids[:, :-1].flatten(), ids[:, 1:].flatten()])
    down = torch.stack([ids[:-1].flatten(), ids[1:].flatten()])
    diagonal = torch.stack([ids[:-1, :-1].flatten(), ids[1:, 1:].flatten()])
    edges = torch.cat([right, down, diagonal], dim=1)
    return torch.cat([edges, edges.flip(0)], dim=1)


class SageLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.neighbours = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, source, target, inverse_degree):
        gathered = torch.zeros_like(x).index_add(0, target, x[source])
        return self.own(x) + self.neighbours(gathered * inverse_degree)


class MeshNet(nn.Module):
    def __init__(self, inputs=6, width=48, classes=4):
        super().__init__()
        self.layers = nn.ModuleList([SageLayer(inputs, width), SageLayer(width, width)])
        self.head = nn.Linear(width, classes)

    def forward(self, x, *graph):
        for layer in self.layers:
            x = F.relu(layer(x, *graph))
        return self.head(x)


def main():
    torch.manual_seed(0)
    side = 72
    source, target = grid_mesh(side)
    inverse_degree = 1.0 / torch.bincount(target, minlength=side * side)[:, None]
    yx = torch.cartesian_prod(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side))
    labels = (yx[:, 0] > 0).long() * 2 + (yx[:, 1] > 0).long()
    model = MeshNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, fused=True)
    for step in range(1, 501):
        noisy = yx + 0.4 * torch.randn_like(yx)
        features = torch.cat([noisy, noisy.square(), torch.randn_like(yx)], dim=1)
        logits = model(features, source, target, inverse_degree)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            accuracy = (logits.argmax(1) == labels).float().mean()
            print(f"step {step}: loss {loss.item():.4f} accuracy {accuracy.item():.3f}")


if __name__ == "__main__":
    main()
