"""
Fills in missing loop-detector readings on a motorway network with heat-kernel graph convolutions.

    cfg = CONFIG | {"steps": 100}; run(cfg)
"""
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "detectors": 224,
    "reach": 0.12,
    "channels": 32,
    "window": 12,
    "scales": (0.5, 2.0),
    "layers": 2,
    "rows": 16,
    "steps": 900,
    "every": 100,
    "lr": 3e-3,
    "seed": 23,
}


def road_graph(cfg, g):
    place = torch.rand(cfg["detectors"], 2, generator=g)
    distance = torch.cdist(place, place)
    weights = torch.exp(-((distance / cfg["reach"]) ** 2)) * (distance < 2 * cfg["reach"])
    return weights.fill_diagonal_(0.0), place


def readings(cfg, place, g, hours=3000):
    """Slow waves that run over the map, plus rush hours."""
    t = torch.arange(hours)[:, None] / 24
    k = torch.randn(2, 6, generator=g) * 3
    w = torch.rand(6, generator=g) * 4 + 1
    waves = torch.sin((place @ k)[None] + (t * w)[:, None]).mean(-1)
    rush = torch.exp(-(((t % 1) - 0.33) ** 2) / 0.005) * (0.5 + place[:, 0])
    return waves + rush + 0.05 * torch.randn(hours, cfg["detectors"], generator=g)


def normalised_laplacian(weights):
    scale = weights.sum(1).clamp(min=1e-6).rsqrt()
    return torch.eye(len(weights)) - scale[:, None] * weights * scale


class Network(nn.Module):
    """Holds the graph, for all layers."""

    def __init__(self, weights, scales):
        super().__init__()
        self.register_buffer("laplacian", normalised_laplacian(weights))
        self.scales = scales

    def kernels(self):
        return torch.stack([torch.matrix_exp(-s * self.laplacian) for s in self.scales])  # flaw: constant-rebuilt


class HeatConv(nn.Module):
    def __init__(self, channels, scales):
        super().__init__()
        self.mix = nn.Linear(channels * (len(scales) + 1), channels)
        self.norm = nn.LayerNorm(channels * (len(scales) + 1))

    def forward(self, x, kernels):
        spread = [x] + [kernel @ x for kernel in kernels.unbind()]
        return x + F.relu(self.mix(self.norm(torch.cat(spread, dim=-1))))


class Imputer(nn.Module):
    def __init__(self, cfg, weights):
        super().__init__()
        self.network = Network(weights, cfg["scales"])
        self.lift = nn.Linear(2 * cfg["window"], cfg["channels"])
        self.convs = nn.ModuleList(HeatConv(cfg["channels"], cfg["scales"]) for _ in range(cfg["layers"]))
        self.drop = nn.Linear(cfg["channels"], cfg["window"])

    def forward(self, series, seen):
        kernels = self.network.kernels()
        x = F.relu(self.lift(torch.cat([series * seen, seen], dim=-1)))
        for conv in self.convs:
            x = conv(x, kernels)
        return self.drop(x)


def run(cfg):
    torch.manual_seed(cfg["seed"])
    g = torch.Generator().manual_seed(cfg["seed"])
    weights, place = road_graph(cfg, g)
    windows = readings(cfg, place, g).unfold(0, cfg["window"], 1)
    model = Imputer(cfg, weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], fused=True)

    total = torch.zeros(())
    for step in range(1, cfg["steps"] + 1):
        series = windows[torch.randint(len(windows), (cfg["rows"],), generator=g)]
        seen = (torch.rand(series.shape, generator=g) > 0.4).float()
        loss = F.l1_loss(model(series, seen), series)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % cfg["every"] == 0:
            print("step", step, "mean absolute error", round(total.item() / cfg["every"], 5))
            total.zero_()
    return model


if __name__ == "__main__":
    run(CONFIG)
