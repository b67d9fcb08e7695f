"""A recurrent cell written by hand: tiny operators, thousands a step."""

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.input = nn.Linear(width, 3 * width)
        self.state = nn.Linear(width, 3 * width)

    def forward(self, x, h):
        given, kept = self.input(x), self.state(h)
        xr, xz, xn = given.chunk(3, -1)
        hr, hz, hn = kept.chunk(3, -1)
        reset = torch.sigmoid(xr + hr)
        update = torch.sigmoid(xz + hz)
        new = torch.tanh(xn + reset * hn)
        return (1 - update) * new + update * h


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(200, 24)
        self.cell = Cell(24)
        self.head = nn.Linear(24, 200)

    def forward(self, tokens):
        h = torch.zeros(tokens.shape[0], 24)
        losses = []
        for at in range(tokens.shape[1] - 1):
            h = self.cell(self.embed(tokens[:, at]), h)
            losses.append(nn.functional.cross_entropy(self.head(h), tokens[:, at + 1]))
        return torch.stack(losses).mean()


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    tokens = torch.randint(0, 200, (8, 60))
    for _ in range(1000000):
        optimizer.zero_grad()
        loss = net(tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()


main()
