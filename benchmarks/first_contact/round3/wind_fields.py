# next-hour prediction of gridded weather from a long record in host memory
import os
import torch
from torch import nn
from torch.nn import functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
HOURS, VARS, LAT, LON, B, STEPS, W = (20, 4, 12, 16, 2, 30, 8) if small else (160, 16, 180, 360, 16, 100, 64)


class Mixer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.GroupNorm(4, c)
        self.conv = nn.Conv2d(c, c, 3, padding=1, padding_mode="zeros")

    def forward(self, x):
        return x + F.gelu(self.conv(self.norm(x)))


def windows(record):
    for step in range(STEPS):
        start = (step * 37) % (HOURS - B - 1)
        both = record[start : start + B + 1].to(device, non_blocking=True)  # flaw: pageable-host-copy
        yield both[:-1], both[1:]


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    record = torch.randn(HOURS, VARS, LAT, LON)  # flaw: pageable-host-copy
    model = nn.Sequential(nn.Conv2d(VARS, W, 2, 2), Mixer(W), Mixer(W), nn.Conv2d(W, VARS * 4, 1), nn.PixelShuffle(2))
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    weight = torch.cos(torch.linspace(-1.5, 1.5, LAT, device=device))[:, None]
    losses = []
    for now, later in windows(record):
        now = now.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            change = model(now)
        loss = ((now + change.float() - later).square() * weight).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    print("first", losses[0].item(), "last", losses[-1].item())


if __name__ == "__main__":
    main()
