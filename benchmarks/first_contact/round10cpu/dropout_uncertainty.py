"""Monte Carlo dropout: predict wind power with error bars, many passes per batch."""

import torch
import torch.nn as nn


class PowerCurve(nn.Module):
    def __init__(self, inputs=12, width=96, depth=5):
        super().__init__()
        layers = []
        for i in range(depth):
            layers += [nn.Linear(inputs if i == 0 else width, width), nn.SiLU(), nn.Dropout(0.1)]
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def turbines(count, generator):
    wind = 12 * torch.rand(count, 1, generator=generator)
    rest = torch.randn(count, 11, generator=generator)
    power = (wind / 12).pow(3).squeeze(1) + 0.05 * rest[:, 0]
    return torch.cat([wind / 12, rest], dim=1), power


def fit(model, x, y, steps=60):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    for _ in range(steps):
        i = torch.randint(len(x), (128,))
        loss = nn.functional.mse_loss(model(x[i]), y[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def predict(model, x, passes):
    """Mean and spread over several passes with dropout on."""
    model.train()
    samples = torch.stack([model(x) for _ in range(passes)])  # flaw: grad-in-eval
    return samples.mean(0).detach(), samples.std(0).detach()


def main():
    torch.manual_seed(0)
    x, y = turbines(40_960, torch.Generator().manual_seed(0))
    model = PowerCurve()
    print(f"fit: {fit(model, x, y):.4f}")
    inside, error = [], []
    for features, power in zip(x.split(256), y.split(256)):
        mean, spread = predict(model, features, passes=20)
        inside.append(((power - mean).abs() < 2 * spread).float().mean())
        error.append((power - mean).abs().mean())
    print(f"coverage {torch.stack(inside).mean():.3f}, error {torch.stack(error).mean():.4f}")


if __name__ == "__main__":
    main()
