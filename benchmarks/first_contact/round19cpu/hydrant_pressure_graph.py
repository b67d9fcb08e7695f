"""Pressure at the hydrants of a town, an hour ahead, from a graph of pipes."""
import torch
import torch.nn.functional as F
from torch import nn


class Town:
    def __init__(self, hydrants, hours, seed):
        gen = torch.Generator().manual_seed(seed)
        place = torch.rand(hydrants, 2, generator=gen)
        apart = torch.cdist(place, place)
        self.pipes = torch.exp(-((apart / 0.08) ** 2)) * (apart < 0.2)
        flow = self.pipes / self.pipes.sum(1, keepdim=True)
        pressure, series = torch.randn(hydrants, generator=gen), []
        for hour in range(hours):
            demand = torch.randn(hydrants, generator=gen) * 0.4
            pressure = 0.85 * flow @ pressure + 0.3 * torch.sin(torch.tensor(hour * 0.26)) + demand
            series.append(pressure)
        self.series = torch.stack(series)
        self.gen = gen

    def sample(self, size, past):
        at = torch.randint(past, len(self.series), (size,), generator=self.gen)
        seen = self.series[at[:, None] + torch.arange(-past, 0)]
        return seen.transpose(1, 2), self.series[at]


class ChebyshevLayer(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.weight = nn.Linear(3 * inside, outside)

    def forward(self, x, basis):
        hops = torch.einsum("kij,bjc->bikc", basis, x)
        return self.weight(hops.flatten(2))


class PressureNet(nn.Module):
    def __init__(self, pipes, past, width=16):
        super().__init__()
        self.register_buffer("pipes", pipes)
        self.first = ChebyshevLayer(past, width)
        self.second = ChebyshevLayer(width, width)
        self.last = nn.Linear(width, 1)

    def basis(self):
        root = self.pipes.sum(1).rsqrt()  # flaw: constant-rebuilt
        one = torch.eye(len(root))  # flaw: constant-rebuilt
        shifted = -root[:, None] * self.pipes * root  # flaw: constant-rebuilt
        return torch.stack([one, shifted, 2 * shifted @ shifted - one])  # flaw: constant-rebuilt

    def forward(self, seen):
        hops = self.basis()  # flaw: constant-rebuilt
        x = F.relu(self.first(seen, hops))
        x = F.relu(self.second(x, hops))
        return self.last(x)[..., 0]


def fit(net, town, steps, size, past):
    opt = torch.optim.Adam(net.parameters(), lr=3e-3, fused=True)
    for step in range(steps):
        seen, wanted = town.sample(size, past)
        loss = F.mse_loss(net(seen), wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield step, loss.item()


if __name__ == "__main__":
    torch.manual_seed(17)
    town = Town(hydrants=420, hours=1500, seed=17)
    net = PressureNet(town.pipes, past=8)
    recent = []
    for step, loss in fit(net, town, steps=720, size=4, past=8):
        recent.append(loss)
        if step % 90 == 89:
            print(f"{step + 1:4d}  mean squared error {sum(recent) / len(recent):.4f}")
            recent.clear()
