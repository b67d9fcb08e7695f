# doubles the resolution of a film, a group of frames at a time
import os

import torch
from torch import nn
from torch.nn import functional as F

SMALL = os.environ.get("SMALL")
on_gpu = torch.cuda.is_available()
device = torch.device("cuda" if on_gpu else "cpu")
torch.backends.cudnn.benchmark = True


class Upscaler(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Conv2d(16, width, 3, padding=1)
        self.mid = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.out = nn.Conv2d(width, 64, 3, padding=1)

    def forward(self, frames):
        x = F.pixel_unshuffle(F.pad(frames, (0, 0, 0, 0, 0, 1)), 2)
        x = F.relu(self.inp(x), inplace=True)
        for conv in self.mid:
            x = F.relu(conv(x), inplace=True)
        return F.pixel_shuffle(self.out(x), 4)[:, :3].clamp(0, 1)


def reel(groups, frames, height, width):
    base = torch.rand(frames, 3, height, width, device=device).to(torch.bfloat16)
    for shift in range(groups):
        yield base.roll(shift, -1).contiguous(memory_format=torch.channels_last)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    frames, height, width, channels, depth, groups = (2, 16, 16, 16, 2, 30) if SMALL else (8, 540, 960, 64, 10, 70)
    net = Upscaler(channels, depth).to(device, torch.bfloat16, memory_format=torch.channels_last).eval()
    upscale = torch.compile(net, disable=not on_gpu)
    brightness = torch.zeros(groups, device=device)
    for i, group in enumerate(reel(groups, frames, height, width)):
        brightness[i] = upscale(group).float().mean()
    print(f"{groups * frames} frames, brightness {brightness.mean().item():.4f}")


main()
