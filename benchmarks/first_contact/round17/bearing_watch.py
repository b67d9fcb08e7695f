"""Autoencoder on bearing vibration; the alarm level follows the latest residual maps."""
import collections
import os

import torch
import torch.nn.functional as F
from torch import nn

tiny = "TINY" in os.environ
dev = "cuda" if torch.cuda.is_available() else "cpu"
SENSORS, WINDOW, ROWS, STEPS, LATEST = (4, 64, 4, 12, 5) if tiny else (64, 1024, 128, 600, 20)


class Callback:
    def on_step(self, step, given, rebuilt):
        pass

    def on_end(self):
        pass


class AlarmLevel(Callback):
    def __init__(self, latest):
        self.latest = latest
        self.maps = collections.deque()  # flaw: memory-growth

    def on_step(self, step, given, rebuilt):
        self.maps.append((given - rebuilt.detach()).abs_())  # flaw: memory-growth

    def on_end(self):
        recent = [m.amax((1, 2)) for m in list(self.maps)[-self.latest :]]
        level = torch.cat(recent).quantile(0.99)
        print(f"alarm above {level.item():.2f}")


class Rebuild(nn.Module):
    def __init__(self, width):
        super().__init__()
        code = width // 32
        self.down = nn.Sequential(
            nn.Linear(WINDOW, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, code)
        )
        self.up = nn.Sequential(
            nn.Linear(code, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, WINDOW)
        )

    def forward(self, x):
        return self.up(self.down(x))


def run(callbacks):
    torch.manual_seed(0)
    net = Rebuild(32 if tiny else 8192).to(dev)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    clock = torch.linspace(0, 40, WINDOW, device=dev)
    for step in range(STEPS):
        phase = torch.rand(ROWS, SENSORS, 1, device=dev) * 6.3
        wave = torch.sin(clock + phase).add_(torch.randn(ROWS, SENSORS, WINDOW, device=dev), alpha=0.1)
        with torch.autocast(dev, dtype=torch.bfloat16):
            rebuilt = net(wave).float()
        loss = F.mse_loss(rebuilt, wave)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        for cb in callbacks:
            cb.on_step(step, wave, rebuilt)
    for cb in callbacks:
        cb.on_end()


run([AlarmLevel(LATEST)])
