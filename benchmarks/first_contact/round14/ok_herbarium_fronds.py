"""Fern species from herbarium sheets: loader with workers, channels-last residual network."""
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True


class Sheets(Dataset):
    """Decoded scans in shared memory, cut at random places."""

    def __init__(self, scans, side, number):
        g = torch.Generator().manual_seed(1)
        self.scans = torch.randint(0, 256, (scans, side + 32, side + 32, 3), dtype=torch.uint8, generator=g)
        self.side, self.number = side, number

    def __len__(self):
        return self.number

    def __getitem__(self, i):
        y, x = (i * 7) % 32, (i * 13) % 32
        return self.scans[i % len(self.scans), y : y + self.side, x : x + self.side].contiguous(), i % 64


class Frond(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.c2, self.n2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.skip = None
        if stride > 1 or a != b:
            self.skip = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        y = self.n2(self.c2(F.relu(self.n1(self.c1(x)), inplace=True)))
        y += x if self.skip is None else self.skip(x)
        return F.relu(y, inplace=True)


def build(widths, deep):
    parts = [nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for i, w in enumerate(widths):
        for j in range(deep):
            parts.append(Frond(widths[max(i - 1, 0)] if j == 0 else w, w, 2 if i and j == 0 else 1))
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 64))


def main():
    torch.manual_seed(0)
    side, batch, steps, widths = (32, 4, 4, (8, 16)) if TINY else (192, 192, 260, (64, 128, 256, 512))
    loader = DataLoader(
        Sheets(64, side, batch * steps), batch, num_workers=2 if TINY else 12, pin_memory=dev.type == "cuda", drop_last=True, persistent_workers=True, prefetch_factor=4
    )
    model = build(widths, 1 if TINY else 3).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, fused=True)
    total = torch.zeros((), device=dev)
    for sheets, species in loader:
        sheets = sheets.to(dev, non_blocking=True).permute(0, 3, 1, 2)
        species = species.to(dev, non_blocking=True)
        sheets = sheets.to(torch.bfloat16).sub_(127.5).div_(60)
        with torch.autocast(dev.type, torch.bfloat16):
            loss = F.cross_entropy(model(sheets), species)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
    print(f"fern loss {total.item() / steps:.4f}")


if __name__ == "__main__":
    main()
