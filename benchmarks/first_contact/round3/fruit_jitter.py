"""Fruit grading; colours are changed on the device before each step."""
import os
import torch
from torch import nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True


def jitter(x, hue, sat, val):  # flaw: unfused-elementwise
    r, g, b = x.unbind(1)
    hi, lo = torch.maximum(torch.maximum(r, g), b), torch.minimum(torch.minimum(r, g), b)
    delta = hi - lo + 1e-6
    h = torch.where(hi == r, (g - b) / delta, torch.where(hi == g, 2 + (b - r) / delta, 4 + (r - g) / delta))
    h = (h / 6 + hue) % 1.0
    s = (delta / (hi + 1e-6) * sat).clamp(0, 1)
    v = (hi * val).clamp(0, 1)
    out = []
    for n in (5.0, 3.0, 1.0):
        k = (n + h * 6) % 6
        out.append(v - v * s * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(out, 1)


class Grader(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(3, c, 4, 4, bias=False), nn.BatchNorm2d(c), nn.ReLU(True),
            nn.Conv2d(c, 2 * c, 3, 2, 1, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU(True),
            nn.Conv2d(2 * c, 4 * c, 3, 2, 1, bias=False), nn.BatchNorm2d(4 * c), nn.ReLU(True))
        self.h = nn.Linear(4 * c, 5)

    def forward(self, x):
        return self.h(self.f(x).mean((2, 3)))


def main():
    side, batch, c, steps = (16, 2, 4, 30) if small else (224, 256, 64, 100)
    fruit = torch.rand(batch * 3, 3, side, side, device=dev)
    grade = torch.randint(5, (batch * 3,), device=dev)
    net = Grader(c).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.03, momentum=0.9, fused=True)
    for i in range(steps):
        k = slice(i % 3 * batch, (i % 3 + 1) * batch)
        amount = torch.rand(3, batch, 1, 1, device=dev)
        x = jitter(fruit[k], amount[0] * 0.1, amount[1] + 0.5, amount[2] + 0.5)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x.contiguous(memory_format=torch.channels_last)), grade[k])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("loss", loss.item())


main()
