"""Traffic forecasts on a sensor graph with Chebyshev filters."""
import torch
import torch.nn.functional as F
from torch import nn

SENSORS, HISTORY, BATCH, STEPS, ORDER = 420, 12, 16, 160, 5


def road_graph(sensors, seed):
    g = torch.Generator().manual_seed(seed)
    where = torch.rand(sensors, 2, generator=g)
    weight = torch.exp(-torch.cdist(where, where).square() / 0.01)
    weight.fill_diagonal_(0.0)
    scale = weight.sum(1).clamp_min(1e-6).rsqrt()
    return -(scale[:, None] * weight * scale[None, :])


class GraphFilter(nn.Module):
    def __init__(self, laplacian, order):
        super().__init__()
        self.order = order
        self.register_buffer("laplacian", laplacian)
        self.register_buffer("bases", self.polynomials())

    def polynomials(self):
        terms = [torch.eye(len(self.laplacian)), self.laplacian]
        while len(terms) < self.order:
            terms.append(2 * self.laplacian @ terms[-1] - terms[-2])
        return torch.stack(terms)

    def extra_repr(self):
        return f"order={self.order}"


class ChebConv(GraphFilter):
    def __init__(self, laplacian, order, inputs, outputs):
        super().__init__(laplacian, order)
        self.mix = nn.Linear(order * inputs, outputs)

    def forward(self, x):
        batch, nodes, channels = x.shape
        bases = self.bases
        flat = x.transpose(0, 1).reshape(nodes, batch * channels)
        spread = (bases.view(-1, nodes) @ flat).view(self.order, nodes, batch, channels)
        return self.mix(spread.permute(2, 1, 0, 3).flatten(2))


class Forecaster(nn.Module):
    def __init__(self, laplacian):
        super().__init__()
        self.first = ChebConv(laplacian, ORDER, HISTORY, 24)
        self.second = ChebConv(laplacian, ORDER, 24, 1)

    def forward(self, x):
        return x[..., -1] + self.second(F.relu(self.first(x))).squeeze(-1)


def readings(generator):
    phase = torch.rand(BATCH, SENSORS, 1, generator=generator) * 6.28
    time = torch.arange(HISTORY + 1) * 0.4
    wave = torch.sin(phase + time)
    return wave[..., :-1], wave[..., -1]


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(3)
    model = Forecaster(road_graph(SENSORS, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    smooth = None
    for step in range(STEPS):
        x, y = readings(generator)
        loss = F.l1_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
    print(f"smoothed error {smooth:.4f}")


main()
