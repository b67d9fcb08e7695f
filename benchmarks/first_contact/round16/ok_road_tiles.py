"""Road classification of map tiles with a residual CNN and a worker-fed loader."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
SIDE, BATCH, STEPS, WORKERS = (32, 4, 4, 2) if TINY else (128, 128, 500, 12)


class Tiles(Dataset):
    def __init__(self, count):
        self.bank = np.random.default_rng(0).integers(0, 256, (512, SIDE, SIDE, 4), dtype=np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        tile = np.rot90(self.bank[i % 512], i % 4)
        return torch.from_numpy(tile.copy()).permute(2, 0, 1), i % 10


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
            nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b))
        self.skip = nn.Identity() if a == b and stride == 1 else nn.Sequential(
            nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.body(x) + self.skip(x))


def main():
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(
        Residual(4, 64, 2), Residual(64, 128, 1), Residual(128, 256, 2), Residual(256, 256, 1),
        Residual(256, 512, 2), Residual(512, 512, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    net = net.to(dev, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    loader = DataLoader(Tiles(STEPS * BATCH), BATCH, num_workers=WORKERS, persistent_workers=True,
                        pin_memory=dev.type == "cuda", prefetch_factor=4)
    total = torch.zeros((), device=dev)
    for tiles, kinds in loader:
        tiles = tiles.to(dev, non_blocking=True).to(torch.bfloat16, memory_format=torch.channels_last) / 255
        kinds = kinds.to(dev, non_blocking=True)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(tiles), kinds)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
    print(f"mean loss {total.item() / STEPS:.4f}")


if __name__ == "__main__":
    main()
