"""Restores damaged film: three neighbouring frames in, the clean middle frame out."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

quick = os.environ.get("SMALL") is not None
SIDE, BATCH, CH, BLOCKS, STEPS = (16, 2, 8, 1, 30) if quick else (192, 64, 48, 6, 100)


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(9, CH, 3, 2, 1)
        self.steps = nn.ModuleList(
            nn.Sequential(nn.Conv2d(CH, CH, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(CH, CH, 3, padding=1))
            for _ in range(BLOCKS))
        self.leave = nn.Conv2d(CH, 12, 3, padding=1)

    def forward(self, x):
        h = self.enter(x)
        for s in self.steps:
            h = h + s(h)
        return x[:, 3:6] + F.pixel_shuffle(self.leave(h), 2)


class Meter:
    def __init__(self, name):
        self.name, self.values = name, []

    def add(self, value):
        self.values.append(value)  # flaw: graph-kept-alive|memory-growth

    def show(self):
        stacked = torch.stack(self.values)
        print(f"{self.name}: first {stacked[0].item():.3f} mean {stacked.mean().item():.3f} last {stacked[-1].item():.3f}")


def psnr(a, b):
    return -10 * torch.log10(F.mse_loss(a, b))


def damaged(clean, frames):
    x = clean.repeat(1, frames, 1, 1)
    scratches = (torch.rand(x.shape[0], x.shape[1], 1, x.shape[3], device=x.device) < 0.02).float()
    return torch.lerp(x, torch.ones_like(x), scratches)


def main():
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    film = torch.rand(BATCH * 3, 3, SIDE, SIDE, device=device).to(memory_format=torch.channels_last)
    net = Restorer().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=device.type == "cuda")
    quality = Meter("psnr")
    for step in range(STEPS):
        clean = film[step % 3 * BATCH:][:BATCH]
        with torch.autocast(device.type, torch.bfloat16):
            restored = net(damaged(clean, 3))
        restored = restored.float()
        loss = F.l1_loss(restored, clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
        quality.add(psnr(restored, clean))  # flaw: graph-kept-alive|memory-growth
    quality.show()


if __name__ == "__main__":
    main()
