import os
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True


def cbr(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Glacier(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b, self.d = cbr(6, c), cbr(c, 2 * c, 2), cbr(2 * c, 4 * c, 2)
        self.ub, self.ua = cbr(6 * c, 2 * c), cbr(3 * c, c)
        self.out = nn.Conv2d(c, 4, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        d = F.interpolate(self.d(b), scale_factor=2.0)
        b = F.interpolate(self.ub(torch.cat([d, b], 1)), scale_factor=2.0)
        return self.out(self.ua(torch.cat([b, a], 1)))


class Confusion:
    """Counts pairs (truth, guess) on the device and is read once at the end."""

    def __init__(self, kinds):
        self.kinds = kinds
        self.table = torch.zeros(kinds * kinds, dtype=torch.long, device=device)

    def add(self, truth, guess):
        pair = (truth * self.kinds + guess).flatten()
        self.table.scatter_add_(0, pair, torch.ones_like(pair))

    def iou(self):
        t = self.table.view(self.kinds, self.kinds).double().cpu()
        return (t.diag() / (t.sum(0) + t.sum(1) - t.diag()).clamp(min=1)).mean().item()


def main():
    c, side, batch, steps = (4, 16, 2, 30) if SMALL else (64, 256, 16, 100)
    net = Glacier(c).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    scenes = torch.randn(batch * 4, 6, side, side, device=device).contiguous(memory_format=torch.channels_last)
    truth = torch.randint(4, (batch * 4, side, side), device=device)
    confusion = Confusion(4)
    for i in range(steps):
        k = slice(i % 4 * batch, (i % 4 + 1) * batch)
        with torch.autocast(device, torch.bfloat16):
            scores = net(scenes[k])
            loss = F.cross_entropy(scores, truth[k])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i >= steps - 5:
            confusion.add(truth[k], scores.detach().argmax(1))
    print("iou", confusion.iou())


main()
