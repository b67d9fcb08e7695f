"""Next-frame prediction with alternating spatial convolutions and channel mixing."""
import os
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

REGISTRY = {}


def register(name):
    def wrap(cls):
        REGISTRY[name] = cls
        return cls
    return wrap


@register("space")
class Space(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + F.gelu(self.a(x))


@register("channel")
class Channel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.LayerNorm(c)
        self.up, self.down = nn.Linear(c, 2 * c), nn.Linear(2 * c, c)

    def forward(self, x):
        y = x.contiguous().movedim(1, -1).contiguous()  # flaw: layout-churn
        y = self.down(F.gelu(self.up(self.norm(y))))
        y = y.movedim(-1, 1).contiguous()  # flaw: layout-churn
        return x + y


def build(kinds, c, past):
    make = [partial(REGISTRY[k], c) for k in kinds]
    return nn.Sequential(nn.Conv2d(3 * past, c, 3, padding=1), *[m() for m in make], nn.Conv2d(c, 3, 3, padding=1))


def clips(n, past, side, device):
    """Drifting textures: every frame is the one before, shifted."""
    base = torch.rand(n, 3, side, side, device=device)
    frames = torch.cat([base.roll((t, 2 * t), (2, 3)) for t in range(past + 1)], 1)
    frames = frames.contiguous(memory_format=torch.channels_last)
    return frames[:, : 3 * past], frames[:, 3 * past:]


def main():
    small = os.environ.get("SMALL") == "1"
    n, past, side, c, steps = (2, 2, 16, 16, 30) if small else (24, 4, 96, 128, 70)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(17)
    net = build(["space", "channel"] * 6, c, past).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    past_frames, future = clips(n, past, side, device)
    track = []
    for step in range(steps):
        with torch.autocast(device, dtype=torch.bfloat16):
            out = net(past_frames)
        loss = F.smooth_l1_loss(out.float(), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        track.append(loss.detach())
    print("loss every 10 steps:", [round(v, 4) for v in torch.stack(track)[::10].tolist()])


if __name__ == "__main__":
    main()
