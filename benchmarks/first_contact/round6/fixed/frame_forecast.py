import os

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL")
CLIPS, SIDE, WIDTH, HORIZON = (2, 16, 8, 30) if SMALL else (8, 512, 96, 128)


class Predictor(nn.Module):
    """Next frame from the last two, as a residual."""

    def __init__(self, width):
        super().__init__()
        self.enc = nn.Conv2d(8, width, 3, 2, 1)
        self.body = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(6))
        self.dec = nn.Conv2d(width, 16, 3, padding=1)

    def forward(self, pair):
        h = F.relu_(self.enc(pair))
        for conv in self.body:
            h = F.relu_(conv(h))
        return F.pixel_shuffle(self.dec(h), 2)


class Reel:
    """What has been shown so far."""

    def __init__(self, first):
        n, (b, *rest) = len(first), first[0].shape
        self.film = first[0].new_empty(b, n + HORIZON, *rest)
        self.film[:, :n] = torch.stack(first, 1)
        self.used = n

    def show(self, frame):
        self.film[:, self.used] = frame
        self.used += 1

    def __len__(self):
        return self.film.shape[1]


def roll(model, first, horizon):
    reel = Reel(first)
    before, now = first
    for _ in range(horizon):
        pair = F.pad(torch.cat((before, now), 1), (0, 0, 0, 0, 0, 2))
        pair = pair.to(torch.bfloat16, memory_format=torch.channels_last)
        before, now = now, torch.clamp(now + 0.01 * model(pair)[:, :3], 0, 1)
        reel.show(now)
    return reel


with torch.inference_mode():
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    model = Predictor(WIDTH).to(device, torch.bfloat16, memory_format=torch.channels_last).eval()
    seed = [torch.rand(CLIPS, 3, SIDE, SIDE, device=device) for _ in range(2)]
    roll(model, seed, 2)
    reel = roll(model, seed, HORIZON)
    print(len(reel), "frames, mean", round(reel.film[:, -1].mean().item(), 4))
