"""Traffic speed forecast on a road-sensor network; edges are Gaussian in the distance of the sensors."""
from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclasses.dataclass(frozen=True)
class Plan:
    sensors: int
    history: int
    horizon: int
    hidden: int
    layers: int
    batch: int
    steps: int

    @staticmethod
    def pick(cuda: bool) -> "Plan":
        if cuda:
            return Plan(sensors=12_288, history=16, horizon=16, hidden=64, layers=6, batch=8, steps=150)
        return Plan(sensors=40, history=8, horizon=8, hidden=8, layers=2, batch=2, steps=4)


def gaussian_adjacency(position: Tensor, scale: float, threshold: float = 0.01) -> Tensor:
    """Row-normalised exp(-d^2 / scale^2), cut off below the threshold (as in DCRNN)."""
    distance = torch.cdist(position, position)
    weight = torch.exp(-(distance / scale) ** 2)
    weight = torch.where(weight < threshold, torch.zeros_like(weight), weight)
    return weight / weight.sum(1, keepdim=True)


class GraphLayer(nn.Module):
    """x <- x + relu(A x W); all batch entries are multiplied with A in one product."""

    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Linear(dim, dim)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        n, b, d = x.shape
        mixed = adjacency @ self.weight(x).view(n, b * d)
        return x + F.relu(mixed, inplace=True).view(n, b, d)


class SpeedForecaster(nn.Module):
    def __init__(self, plan: Plan, position: Tensor, scale: float):
        super().__init__()
        adjacency = gaussian_adjacency(position, scale).to(torch.bfloat16)
        self.register_buffer("adjacency", adjacency, persistent=False)
        self.encode = nn.Linear(plan.history, plan.hidden)
        self.layers = nn.ModuleList(GraphLayer(plan.hidden) for _ in range(plan.layers))
        self.decode = nn.Linear(plan.hidden, plan.horizon)

    def forward(self, past: Tensor) -> Tensor:
        x = self.encode(past)
        for layer in self.layers:
            x = layer(x, self.adjacency)
        return self.decode(x)


def make_series(plan: Plan, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sensor positions and a smooth speed series (time, sensors)."""
    gen = torch.Generator(device).manual_seed(0)
    position = torch.rand(plan.sensors, 2, device=device, generator=gen)
    t = torch.arange(600, device=device)[:, None] / 20.0
    wave = torch.sin(t + 6 * position[:, 0]) + torch.cos(0.7 * t + 4 * position[:, 1])
    return position, wave + 0.1 * torch.randn(wave.shape, device=device, generator=gen)


def window(series: Tensor, starts: list[int], length: int) -> Tensor:
    """(sensors, batch, length) slices of the series."""
    return torch.stack([series[s:s + length] for s in starts], dim=1).permute(2, 1, 0).contiguous()


def main() -> None:
    cuda = torch.cuda.is_available()
    plan, device = Plan.pick(cuda), torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    position, series = make_series(plan, device)
    model = SpeedForecaster(plan, position, scale=0.05).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    generator = torch.Generator().manual_seed(1)
    span = plan.history + plan.horizon
    losses = torch.zeros(plan.steps, device=device)
    for step in range(plan.steps):
        starts = torch.randint(0, len(series) - span, (plan.batch,), generator=generator).tolist()
        past, future = window(series, starts, span).split([plan.history, plan.horizon], dim=-1)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            predicted = model(past)
        loss = F.l1_loss(predicted.float(), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    first, last = losses[0].item(), losses[-1].item()
    print(f"mean absolute error {first:.4f} -> {last:.4f}")


if __name__ == "__main__":
    main()
