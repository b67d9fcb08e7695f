"""Gait phase estimation from IMU windows with a token-mixing network, own Trainer with callbacks."""
import torch
from torch import nn


class FeatureNorm(nn.Module):
    """Normalises over the features of a token, with gain and shift."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        return nn.functional.layer_norm(x, self.gain.shape, self.gain, self.shift, self.eps)


class Mixer(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.a, self.b = FeatureNorm(width), FeatureNorm(width)
        self.time = nn.Linear(tokens, tokens)
        self.feat = nn.Linear(width, width)

    def forward(self, x):
        x = x + torch.relu(self.time(self.a(x).transpose(1, 2))).transpose(1, 2)
        return x + torch.relu(self.feat(self.b(x)))


class GaitNet(nn.Module):
    def __init__(self, channels=6, tokens=50, width=48, depth=3):
        super().__init__()
        self.lift = nn.Linear(channels, width)
        self.mix = nn.Sequential(*[Mixer(tokens, width) for _ in range(depth)])
        self.phase = nn.Linear(width, 2)

    def forward(self, window):
        return self.phase(self.mix(self.lift(window)).mean(1))


class Report:
    def on_step(self, trainer, loss):
        if trainer.step % 175 == 0:
            print(f"step {trainer.step}: {loss.item():.5f}")


class Trainer:
    def __init__(self, model, callbacks):
        self.limit = 350
        self.model, self.callbacks, self.step = model, callbacks, 0
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def fit(self, stream):
        for window, target in stream:
            loss = nn.functional.mse_loss(self.model(window), target)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
            for c in self.callbacks:
                c.on_step(self, loss)
            if self.step == self.limit:
                return


def imu_stream(batch, gen):
    t = torch.arange(50) / 50
    while True:
        phase = 6.2832 * torch.rand(batch, 1, generator=gen)
        wave = torch.sin(6.2832 * t + phase).unsqueeze(-1) * torch.linspace(0.2, 1, 6)
        yield wave + 0.2 * torch.randn(batch, 50, 6, generator=gen), torch.cat([phase.sin(), phase.cos()], 1)


if __name__ == "__main__":
    torch.manual_seed(3)
    torch.set_num_threads(1)
    Trainer(GaitNet(), [Report()]).fit(imu_stream(48, torch.Generator().manual_seed(3)))
