"""Super-resolution of microscope frames with a pixel loss and a feature loss."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = bool(os.environ.get("TINY"))
SIDE, BATCH, STEPS, WIDTH = (16, 2, 3, 8) if TINY else (64, 24, 500, 64)
torch.backends.cudnn.benchmark = True


class FeatureExtractor(nn.Module):
    """Stands for a network that was trained elsewhere."""

    def __init__(self, widths):
        super().__init__()
        stages, previous = [], 3
        for width in widths:
            stages.append(nn.Sequential(
                nn.Conv2d(previous, width, 3, padding=1), nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)))
            previous = width
        self.stages = nn.ModuleList(stages)

    def forward(self, x):
        found = []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found


class FeatureLoss(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.extractor = FeatureExtractor(widths).eval().requires_grad_(False)

    def forward(self, made, real):
        with torch.no_grad():
            wanted = self.extractor(real)
        found = self.extractor(made)
        return sum(F.l1_loss(a, b) for a, b in zip(found, wanted))


class Upscaler(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Sequential(*[
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(6)])
        self.out = nn.Sequential(nn.Conv2d(width, 48, 3, padding=1), nn.PixelShuffle(4))

    def forward(self, x):
        return self.out(self.body(self.inp(x)))


def main():
    torch.manual_seed(6)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    upscaler = Upscaler(WIDTH).to(device, memory_format=torch.channels_last)
    features = FeatureLoss((8, 16) if TINY else (64, 128, 256, 512)).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(upscaler.parameters(), lr=2e-4, fused=True)
    for step in range(STEPS):
        real = torch.rand(BATCH, 3, 4 * SIDE, 4 * SIDE, device=device).to(memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            made = upscaler(F.avg_pool2d(real, 4))
            loss = F.l1_loss(made, real) + 0.1 * features(made, real)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, f"{loss.item():.4f}", flush=True)
    print("end", f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
