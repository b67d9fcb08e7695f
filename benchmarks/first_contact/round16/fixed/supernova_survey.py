"""Searches difference images of a sky survey for transients. The night stays in host memory."""
import os
import numpy as np
import torch
from torch import nn

tiny = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True


class Night:
    def __init__(self, stamps, edge, seed=0):
        rng = np.random.default_rng(seed)
        self.pixels = torch.from_numpy(rng.integers(0, 256, (stamps, edge, edge, 3), dtype=np.uint8))
        if device.type == "cuda":
            self.pixels = self.pixels.pin_memory()
        self.rng = rng

    def windows(self, size, count):
        """Runs of stamps from random starts, as the telescope swept them."""
        for start in self.rng.integers(0, len(self.pixels) - size, count):
            yield self.pixels[start:start + size].to(device, non_blocking=True)


def unit(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True),
                         nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


class Finder(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.trunk = nn.Sequential(unit(3, w), unit(w, 2 * w), unit(2 * w, 4 * w), unit(4 * w, 8 * w))
        self.answer = nn.Linear(8 * w, 2)

    def forward(self, stamps):
        x = stamps.permute(0, 3, 1, 2).to(torch.bfloat16, memory_format=torch.channels_last) / 255
        return self.answer(self.trunk(x).mean((2, 3)))


@torch.inference_mode()
def search(night, finder, size, count):
    found = torch.zeros(2, device=device, dtype=torch.long)
    for stamps in night.windows(size, count):
        found += finder(stamps).softmax(-1).gt(0.5).sum(0)
    return found.tolist()


if __name__ == "__main__":
    torch.manual_seed(0)
    size, count, edge, stamps, width = (4, 5, 32, 40, 4) if tiny else (1024, 450, 256, 6000, 32)
    finder = Finder(width).to(device, torch.bfloat16, memory_format=torch.channels_last).eval()
    print(search(Night(stamps, edge), finder, size, count))
