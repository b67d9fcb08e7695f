"""Road segmentation from aerial tiles; only the hardest pixels train (OHEM)."""
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

tiny = "TINY" in os.environ
SIDE, BATCH, ROUNDS = (32, 2, 3) if tiny else (224, 8, 70)


def block(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class RoadNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(block(3, 12, 2), block(12, 24, 2), block(24, 24))
        self.head = nn.Conv2d(24, 1, 1)

    def forward(self, x):
        return F.interpolate(self.head(self.down(x)), scale_factor=4, mode="bilinear", align_corners=False)


class HardPixelLoss(nn.Module):
    def __init__(self, share=1 / 16):
        super().__init__()
        self.share = share

    def forward(self, logits, mask):
        raw = F.binary_cross_entropy_with_logits(logits, mask, reduction="none").view(logits.size(0), -1)
        quota = int(self.share * raw.size(1))
        return raw.topk(quota, dim=1, sorted=False).values.mean()


def tiles(count):
    gen = torch.Generator().manual_seed(21)
    for _ in range(count):
        img = torch.rand(BATCH, 3, SIDE, SIDE, generator=gen)
        road = (F.avg_pool2d(img[:, :1], 5, 1, 2) > 0.53).float()
        yield img.contiguous(memory_format=torch.channels_last), road


torch.manual_seed(1)
net = RoadNet().to(memory_format=torch.channels_last)
loss_fn = HardPixelLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
log = []
t0 = time.perf_counter()
for img, road in tiles(ROUNDS):
    opt.zero_grad(set_to_none=True)
    loss = loss_fn(net(img), road)
    loss.backward()
    opt.step()
    log.append(loss.item())
print(f"{(time.perf_counter() - t0) / ROUNDS * 1e3:.1f} ms", file=sys.stderr)
print("first %.4f last %.4f" % (log[0], log[-1]))
