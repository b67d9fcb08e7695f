# action recognition from short clips, frame convolutions and a GRU
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = {"clips": 24, "frames": 16, "side": 112, "width": 64, "steps": 80, "held": 6}
if os.environ.get("SMALL") == "1":
    cfg.update(clips=2, frames=4, side=24, width=8, steps=30, held=2)

gpu = torch.cuda.is_available()
device = torch.device("cuda", 0) if gpu else torch.device("cpu")
torch.backends.cudnn.benchmark = True


class Spatial(nn.Module):
    """2D convolution on every frame of the clip."""

    def __init__(self, a, b, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(b)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


class ActionNet(nn.Module):
    def __init__(self, w, frames, n_actions=64):
        super().__init__()
        self.frames = frames
        self.net = nn.Sequential(Spatial(3, w, 2), Spatial(w, w), Spatial(w, 2 * w, 2),
                                 Spatial(2 * w, 2 * w), Spatial(2 * w, 4 * w, 2), Spatial(4 * w, 4 * w))
        self.time = nn.GRU(4 * w, 4 * w, batch_first=True)
        self.out = nn.Linear(4 * w, n_actions)

    def forward(self, clip):
        n = clip.shape[0]
        x = self.net(clip.flatten(0, 1))
        x = x.mean((2, 3)).view(n, self.frames, -1)
        _, h = self.time(x)
        return self.out(h[-1])


def shards():
    """Decoded shards as they come from the reader: normalised float clips."""
    out = []
    for k in range(cfg["held"]):
        torch.manual_seed(k)
        clip = torch.randn(cfg["clips"], cfg["frames"], 3, cfg["side"], cfg["side"])
        action = torch.randint(64, (cfg["clips"],))
        if gpu:
            clip, action = clip.pin_memory(), action.pin_memory()
        out.append((clip, action))
    return out


def forever(items):
    while True:
        yield from items


model = ActionNet(cfg["width"], cfg["frames"]).to(device, memory_format=torch.channels_last)
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, fused=True)
stream = forever(shards())
running = torch.zeros((), device=device)

for i in range(cfg["steps"]):
    clip, action = next(stream)
    clip = clip.to(device, non_blocking=True)
    action = action.to(device, non_blocking=True)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        frames = clip.to(torch.bfloat16)
        loss = F.cross_entropy(model(frames), action)
    opt.zero_grad()
    loss.backward()
    opt.step()
    running.lerp_(loss.detach(), 0.1)
    if (i + 1) % 40 == 0:
        print(f"[{i + 1}] {running.item():.4f}")
