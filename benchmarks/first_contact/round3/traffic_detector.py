"""One-stage detector on a grid: objectness, class and box for every cell."""
import os

import torch
from torch import nn
from torch.nn import functional as F


class Mish(nn.Module):
    def forward(self, x):
        return x * torch.tanh(torch.log(1 + torch.exp(x)))  # flaw: hand-written-activation


def cbm(cin, cout, k=3, s=1):
    return nn.Sequential(nn.Conv2d(cin, cout, k, s, k // 2, bias=False), nn.BatchNorm2d(cout), Mish())


class CSPStage(nn.Module):
    def __init__(self, cin, cout, n):
        super().__init__()
        self.down = cbm(cin, cout, 3, 2)
        self.left = cbm(cout, cout // 2, 1)
        self.right = cbm(cout, cout // 2, 1)
        self.inner = nn.Sequential(*(nn.Sequential(cbm(cout // 2, cout // 2, 1), cbm(cout // 2, cout // 2)) for _ in range(n)))
        self.join = cbm(cout, cout, 1)

    def forward(self, x):
        x = self.down(x)
        return self.join(torch.cat((self.inner(self.left(x)), self.right(x)), 1))


class Detector(nn.Module):
    def __init__(self, w, classes):
        super().__init__()
        self.backbone = nn.Sequential(cbm(3, w), CSPStage(w, 2 * w, 1), CSPStage(2 * w, 4 * w, 2), CSPStage(4 * w, 8 * w, 2))
        self.head = nn.Conv2d(8 * w, 5 + classes, 1)

    def forward(self, x):
        return self.head(self.backbone(x))


def detection_loss(raw, target):
    raw = raw.permute(0, 2, 3, 1).float()
    obj = F.binary_cross_entropy_with_logits(raw[..., 0], target[..., 0])
    box = F.smooth_l1_loss(raw[..., 1:5] * target[..., :1], target[..., 1:5] * target[..., :1])
    kind = F.binary_cross_entropy_with_logits(raw[..., 5:], target[..., 5:])
    return obj + box + kind


class Loop:
    def __init__(self, model, optimizer, device):
        self.model, self.optimizer, self.device = model, optimizer, device

    def __call__(self, frames, target):
        with torch.autocast(self.device, dtype=torch.bfloat16):
            raw = self.model(frames)
        loss = detection_loss(raw, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    tiny = os.environ.get("SMALL") == "1"
    w, side, batch, steps = (4, 32, 2, 30) if tiny else (32, 320, 24, 100)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Detector(w, 8).to(device, memory_format=torch.channels_last)
    step = Loop(model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.937, nesterov=True, fused=True), device)
    frames = torch.rand(batch * 2, 3, side, side, device=device).contiguous(memory_format=torch.channels_last)
    target = (torch.rand(batch * 2, side // 8, side // 8, 13, device=device) > 0.95).float()
    losses = []
    for i in range(steps):
        k = i % 2 * batch
        losses.append(step(frames[k : k + batch], target[k : k + batch]))
    print(torch.stack(losses)[-10:].mean().item())
