"""Dense detector whose losses only look at the matched anchors."""
import os
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"


def iou(a, b):
    lo = torch.maximum(a[..., :2], b[..., :2])
    hi = torch.minimum(a[..., 2:], b[..., 2:])
    inter = (hi - lo).clamp(min=0).prod(-1)
    area = lambda q: (q[..., 2:] - q[..., :2]).clamp(min=0).prod(-1)
    return inter / (area(a) + area(b) - inter + 1e-6)


class Head(nn.Module):
    def __init__(self, c, depth, classes):
        super().__init__()
        self.tower = nn.Sequential(*(nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.GroupNorm(4, c), nn.SiLU()) for _ in range(depth)))
        self.kind, self.box = nn.Conv2d(c, classes, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)

    def forward(self, x):
        x = self.tower(x)
        return self.kind(x).flatten(2).transpose(1, 2), self.box(x).flatten(2).transpose(1, 2)


class Detector(nn.Module):
    def __init__(self, c, classes):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, c, 8, 8), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1), nn.SiLU())
        self.shrink = nn.Conv2d(c, c, 3, 2, 1)
        self.head = Head(c, 4, classes)

    def forward(self, x):
        p3 = self.trunk(x)
        levels = [self.head(p) for p in (p3, self.shrink(p3))]
        return torch.cat([k for k, _ in levels], 1), torch.cat([b for _, b in levels], 1)


def objective(kinds, boxes, labels, targets):
    onehot = F.one_hot(labels.clamp(min=0), kinds.size(-1)).float() * (labels >= 0).unsqueeze(-1)
    kind = F.binary_cross_entropy_with_logits(kinds, onehot)
    matched = labels >= 0
    overlap = iou(boxes[matched], targets[matched])  # flaw: sync-in-step
    return kind + (1 - overlap).mean()


def main():
    c, classes, side, batch, steps = (8, 4, 64, 2, 30) if SMALL else (192, 20, 768, 16, 120)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    net = Detector(c, classes).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    anchors = (side // 8) ** 2 + (side // 16) ** 2
    images = torch.rand(batch, 3, side, side, device=dev).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(-30, classes, (batch, anchors), device=dev).clamp(min=-1)
    corner = torch.rand(batch, anchors, 2, device=dev)
    targets = torch.cat([corner, corner + 0.5], -1)
    for i in range(steps):
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            kinds, boxes = net(images.roll(i, 0))
        loss = objective(kinds.float(), boxes.float(), labels.roll(i, 0), targets.roll(i, 0))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("loss", loss.item())


main()
