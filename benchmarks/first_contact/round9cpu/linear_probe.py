"""Linear probe on a frozen image encoder: how good are its features for a new task?"""

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    """Stands in for a pretrained backbone."""

    def __init__(self, width=24, features=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(2 * width, features, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )

    def forward(self, x):
        return self.layers(x)


def freeze(module):
    module.eval()
    for p in module.parameters():
        p.requires_grad_(False)
    return module


def pictures(n=1920, size=64, classes=10):
    label = torch.randint(classes, (n,))
    colour = torch.randn(classes, 3, 1, 1)
    texture = F.interpolate(torch.randn(classes, 3, 8, 8), (size, size))
    return colour[label] + texture[label] + torch.randn(n, 3, size, size), label


class Probe:
    def __init__(self, encoder, classes, lr):
        self.encoder = freeze(encoder)
        self.head = nn.Linear(128, classes)
        self.optimizer = torch.optim.SGD(self.head.parameters(), lr=lr, momentum=0.9, fused=True)

    def epoch(self, x, y, batch=64):
        total = 0.0
        for index in torch.randperm(len(x)).split(batch):
            features = self.encoder(x[index])  # flaw: none-yet(frozen-features-recomputed)
            loss = F.cross_entropy(self.head(features), y[index])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total * batch / len(x)


def main(epochs=12):
    torch.manual_seed(0)
    x, y = pictures()
    probe = Probe(Encoder(), classes=10, lr=0.1)
    for epoch in range(epochs):
        print(f"epoch {epoch}: loss {probe.epoch(x, y):.4f}")  # flaw: none-yet(frozen-features-recomputed)


if __name__ == "__main__":
    main()
