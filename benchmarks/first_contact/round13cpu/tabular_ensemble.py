"""Heteroscedastic regression on tabular data with an ensemble held in batched weights; data stays in memory."""
import torch
import torch.nn.functional as F
from torch import nn


class EnsembleLinear(nn.Module):
    def __init__(self, members, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(members, fan_in, fan_out) * fan_in ** -0.5)
        self.bias = nn.Parameter(torch.zeros(members, 1, fan_out))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class Ensemble(nn.Module):
    def __init__(self, members=6, features=32, hidden=192):
        super().__init__()
        self.members = members
        self.net = nn.Sequential(
            EnsembleLinear(members, features, hidden), nn.ReLU(),
            EnsembleLinear(members, hidden, hidden), nn.ReLU(),
            EnsembleLinear(members, hidden, 2),
        )

    def forward(self, x):
        mean, raw = self.net(x).unbind(-1)
        return mean, F.softplus(raw) + 1e-3


def make_data(rows, features):
    x = torch.randn(rows, features)
    w = torch.randn(features) / features ** 0.5
    y = torch.sin(2 * (x @ w)) + 0.1 * x[:, 0].abs() * torch.randn(rows)
    return x, y


def epochs(x, y, members, batch, count):
    """Every member gets its own order of the rows."""
    for _ in range(count):
        order = torch.stack([torch.randperm(len(x)) for _ in range(members)])
        for index in order.split(batch, 1):
            yield x[index], y[index]


def main():
    torch.manual_seed(61)
    model = Ensemble()
    x, y = make_data(20_000, 32)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    total, steps = torch.zeros(()), 0
    for xb, yb in epochs(x, y, model.members, 512, 24):
        mean, var = model(xb)
        loss = F.gaussian_nll_loss(mean, yb, var)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
        steps += 1
    print("steps", steps, "mean nll", round(float(total) / steps, 4))


if __name__ == "__main__":
    main()
