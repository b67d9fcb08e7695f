"""Learns to step a periodic 2-D wave field; fields come from an exact spectral propagator."""
import os
import numpy as np
import torch
from torch import nn


def sizes():
    if os.environ.get("SMALL") == "1":
        return dict(n=32, batch=2, hidden=8, steps=30)
    return dict(n=256, batch=64, hidden=16, steps=100)


class Propagator:
    def __init__(self, n, device, speed=1.0):
        freq = np.fft.fftfreq(n, 1.0 / n)
        kx, ky = np.meshgrid(freq, freq[: n // 2 + 1], indexing="ij")
        k = 2 * np.pi * np.sqrt(kx ** 2 + ky ** 2)
        self.n, self.speed = n, speed
        self.k = torch.from_numpy(k).to(device)  # flaw: float64-on-device
        self.slope = torch.from_numpy(2j * np.pi * np.stack((kx, ky)) / n).to(device)  # flaw: float64-on-device
        self.envelope = torch.exp(-(self.k / 60.0) ** 2) * n

    def initial(self, batch):
        white = torch.randn(batch, self.n, self.n, device=self.k.device)
        return torch.fft.rfft2(white) * self.envelope

    def at(self, spectrum, t):
        phase = self.speed * self.k * t
        now = spectrum * torch.cos(phase)
        rate = spectrum * (-torch.sin(phase))
        parts = torch.stack((now, rate, now * self.slope[0], now * self.slope[1]), 1)
        return torch.fft.irfft2(parts, s=(self.n, self.n))


class Stepper(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        def block(cin, cout, d):
            return (nn.Conv2d(cin, cout, 3, padding=d, dilation=d), nn.GELU())
        self.net = nn.Sequential(*block(4, hidden, 1), *block(hidden, hidden, 1), *block(hidden, hidden, 1),
                                 *block(hidden, hidden, 1), nn.Conv2d(hidden, 4, 3, padding=1))

    def forward(self, u):
        return u + self.net(u)


def main():
    cfg = sizes()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    physics = Propagator(cfg["n"], device)
    net = Stepper(cfg["hidden"]).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device.type == "cuda")
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg["steps"])
    times = np.random.default_rng(0).uniform(0, 1, cfg["steps"])
    for i, t in enumerate(times):
        spectrum = physics.initial(cfg["batch"])
        u = physics.at(spectrum, float(t)).float().contiguous(memory_format=torch.channels_last)
        v = physics.at(spectrum, float(t) + 0.004).float().contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16):
            w = net(u)
        loss = nn.functional.mse_loss(w.float(), v)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if i % 25 == 0:
            print(i, float(loss))


if __name__ == "__main__":
    main()
