"""Mangrove canopy maps: a U-Net that labels four-band drone tiles (water, mud, seedlings, canopy, dieback)."""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"


class Double(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
        )


class CanopyNet(nn.Module):
    def __init__(self, bands=4, classes=5, base=64):
        super().__init__()
        self.entry = Double(bands, base)
        self.down1 = Double(base, base * 2)
        self.down2 = Double(base * 2, base * 4)
        self.bridge = Double(base * 4, base * 4)
        self.up2 = Double(base * 8, base * 2)
        self.up1 = Double(base * 4, base)
        self.up0 = Double(base * 2, base)
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        a = self.entry(x)
        b = self.down1(F.max_pool2d(a, 2))
        c = self.down2(F.max_pool2d(b, 2))
        d = self.bridge(F.max_pool2d(c, 2))
        y = self.up2(torch.cat([F.interpolate(d, scale_factor=2), c], 1))
        y = self.up1(torch.cat([F.interpolate(y, scale_factor=2), b], 1))
        y = self.up0(torch.cat([F.interpolate(y, scale_factor=2), a], 1))
        return self.head(y)


class Survey:
    """Synthetic tiles: smooth height fields cut into classes, seen through noisy bands. All of it is on the device."""

    def __init__(self, tiles=320, side=256):
        rng = torch.Generator(device=device).manual_seed(11)
        coarse = torch.randn(tiles, 1, side // 16, side // 16, generator=rng, device=device)
        height = F.interpolate(coarse, size=(side, side), mode="bicubic")
        self.labels = torch.bucketize(height[:, 0], torch.tensor([-1.0, -0.3, 0.3, 1.0], device=device))
        tint = torch.randn(5, 4, generator=rng, device=device)
        self.bands = tint[self.labels].permute(0, 3, 1, 2).contiguous()
        self.bands += 0.7 * torch.randn(self.bands.shape, generator=rng, device=device)
        self.rng = rng

    def epoch(self, size):
        for rows in torch.randperm(len(self.bands), generator=self.rng, device=device).split(size):
            yield self.bands[rows], self.labels[rows]


class Trainer:
    def __init__(self, epochs=20, size=16):
        torch.manual_seed(4)
        self.survey = Survey()
        self.net = CanopyNet().to(device)  # flaw: channels-first-conv
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=6e-4, weight_decay=1e-3, fused=True)
        self.epochs, self.size = epochs, size

    def step(self, bands, labels):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(self.net(bands), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self):
        for epoch in range(self.epochs):
            began, total, count = time.perf_counter(), torch.zeros((), device=device), 0
            for bands, labels in self.survey.epoch(self.size):
                total += self.step(bands, labels)
                count += 1
            if epoch % 4 == 3:
                mean = total.item() / count
                print(f"epoch {epoch + 1:2d}: loss {mean:.3f}, {(time.perf_counter() - began) / count * 1e3:.1f} ms a step")


if __name__ == "__main__":
    Trainer().fit()
