"""Scores the tiles of whole-slide images with a frozen network and keeps the best of each slide."""
import os
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

small = os.environ.get("SMALL") == "1"
OPTIONS = {"tile": 32, "batch": 4, "steps": 30, "width": 8} if small else {"tile": 256, "batch": 64, "steps": 60, "width": 96}


class Tiles(Dataset):
    def __init__(self, tile, count):
        self.slide = np.random.default_rng(1).integers(1, 256, (2048, 2048, 3), dtype=np.uint8)
        self.tile, self.count = tile, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        y, x = (i * 97) % (2048 - self.tile), (i * 193) % (2048 - self.tile)
        rgb = self.slide[y : y + self.tile, x : x + self.tile]
        density = -np.log(rgb.astype(np.float32) / 256)
        density /= density.mean() + 1e-6
        return i % 16, torch.from_numpy(density).permute(2, 0, 1).contiguous()


def network(w):
    layers, cin = [], 3
    for i, cout in enumerate((w, 2 * w, 4 * w)):
        layers += [nn.Conv2d(cin, cout, 3, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU()]
        layers += [nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU()]
        cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, 1))


@torch.inference_mode()
def score(options):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    net = network(options["width"]).to(device, memory_format=torch.channels_last).eval()
    common = dict(pin_memory=device == "cuda")
    tiles = Tiles(options["tile"], options["batch"] * options["steps"])
    loader = DataLoader(tiles, options["batch"], **common)  # flaw: loader-without-workers
    best = torch.full((16,), -torch.inf, device=device)
    for slide, pixels in loader:
        slide = slide.to(device, non_blocking=True)
        pixels = pixels.to(device, non_blocking=True, memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            s = net(pixels).squeeze(1)
        best.scatter_reduce_(0, slide, s.float(), "amax")
    return best.cpu()


if __name__ == "__main__":
    print(score(OPTIONS))
