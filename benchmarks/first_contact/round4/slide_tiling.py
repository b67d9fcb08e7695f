"""Per-pixel tissue map of whole slides, tile by tile."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

fast = os.getenv("SMALL") == "1"
TILE, PER_BATCH, GROUPS, SLIDES = (32, 2, 15, 2) if fast else (256, 16, 64, 2)
WIDTH, TISSUES = (8, 8) if fast else (80, 8)


def unit(a, b, s=1):
    return nn.Sequential(nn.Conv2d(a, b, 3, s, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class TissueNet(nn.Module):
    def __init__(self):
        super().__init__()
        w = WIDTH
        self.top = nn.Sequential(unit(3, w), unit(w, w))
        self.middle = nn.Sequential(unit(w, 2 * w, 2), unit(2 * w, 2 * w), unit(2 * w, 2 * w))
        self.bottom = nn.Sequential(unit(2 * w, 4 * w, 2), unit(4 * w, 4 * w), unit(4 * w, 2 * w))
        self.merge = unit(2 * w, w)
        self.head = nn.Conv2d(w, TISSUES, 1)

    def forward(self, x):
        a = self.top(x)
        b = self.middle(a)
        b = b + F.interpolate(self.bottom(b), scale_factor=2)
        return self.head(a + F.interpolate(self.merge(b), scale_factor=2))


class Slide:
    def __init__(self, number, device):
        g = torch.Generator(device=device).manual_seed(number)
        self.tiles = torch.randint(0, 256, (PER_BATCH * 4, 3, TILE, TILE), generator=g, device=device, dtype=torch.uint8)
        self.tiles = self.tiles.to(memory_format=torch.channels_last)

    def groups(self):
        for g in range(GROUPS):
            i = (g % 4) * PER_BATCH
            yield self.tiles[i:i + PER_BATCH]


@torch.inference_mode()
def map_slide(net, slide, device):
    tissue = torch.empty(0, TISSUES, TILE, TILE, device=device).to(memory_format=torch.channels_last)
    for tiles in slide.groups():
        x = tiles.to(torch.bfloat16).mul_(1 / 255)
        tissue = torch.cat((tissue, net(x).float().softmax(1)))  # flaw: cat-in-loop
    return tissue


def report(tissue):
    share = tissue.mean((0, 2, 3)).tolist()
    print("  ".join(f"{p:.3f}" for p in share))


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = TissueNet().to(device, torch.bfloat16, memory_format=torch.channels_last).eval()
    for number in range(SLIDES):
        report(map_slide(net, Slide(number, device), device))
