"""Forecasts speeds on a road network: neighbourhood means and a GRU cell per junction."""

import torch
from torch import nn

JUNCTIONS, HISTORY, HIDDEN = 150, 4, 24


def road_graph(generator):
    place = torch.rand(JUNCTIONS, 2, generator=generator)
    near = torch.cdist(place, place).topk(6, largest=False).indices[:, 1:]
    keep = torch.rand(near.shape, generator=generator) < 0.7
    keep[:, 0] = True
    return [row[mask] for row, mask in zip(near, keep)]


def speeds(neighbours, steps, generator):
    speed = torch.empty(steps, JUNCTIONS)
    speed[0] = 50 + 10 * torch.randn(JUNCTIONS, generator=generator)
    for t in range(1, steps):
        noise = torch.randn(JUNCTIONS, generator=generator)
        speed[t] = 0.95 * speed[t - 1] + 2.5 + noise + 3 * torch.sin(torch.tensor(t / 12))
    return (speed - speed.mean()) / speed.std()


class NeighbourMean(nn.Module):
    def __init__(self, neighbours):
        super().__init__()
        self.neighbours = neighbours
        self.source = torch.cat(neighbours)
        degree = torch.tensor([len(row) for row in neighbours])
        self.target = torch.arange(JUNCTIONS).repeat_interleave(degree)
        self.degree = degree[:, None]

    def forward(self, h):
        total = torch.zeros_like(h).index_add(1, self.target, h[:, self.source])
        return total / self.degree


class TrafficNet(nn.Module):
    def __init__(self, neighbours):
        super().__init__()
        self.gather = NeighbourMean(neighbours)
        self.inp = nn.Linear(1, HIDDEN)
        self.cell = nn.GRUCell(2 * HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, history):
        batch = history.shape[1]
        h = history.new_zeros(batch * JUNCTIONS, HIDDEN)
        for speed in history:
            x = torch.tanh(self.inp(speed[..., None]))
            message = self.gather(h.view(batch, JUNCTIONS, HIDDEN))
            h = self.cell(torch.cat((x, message), -1).flatten(0, 1), h)
        return self.out(h).view(batch, JUNCTIONS)


def main():
    generator = torch.Generator().manual_seed(9)
    torch.manual_seed(9)
    neighbours = road_graph(generator)
    series = speeds(neighbours, 1500, generator)
    model = TrafficNet(neighbours)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    span = torch.arange(HISTORY)[:, None]
    for step in range(180):
        start = torch.randint(len(series) - HISTORY - 1, (16,), generator=generator)
        history, future = series[start + span], series[start + HISTORY]
        loss = nn.functional.l1_loss(model(history), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} mae {loss.item():.4f}")


if __name__ == "__main__":
    main()
