"""Leaf-spot disease classifier on synthetic photographs."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    image: int = 128
    batch: int = 192
    width: int = 64
    classes: int = 40
    steps: int = 80
    lr: float = 0.05

    @classmethod
    def from_env(cls):
        if os.environ.get("SMALL") == "1":
            return cls(image=32, batch=4, width=8, steps=30)
        return cls()


def conv3x3(cin, cout, stride=1):
    return nn.Conv2d(cin, cout, kernel_size=3, stride=stride, padding=1)  # flaw: conv-bias-before-norm


def conv1x1(cin, cout, stride=1):
    return nn.Conv2d(cin, cout, kernel_size=1, stride=stride)  # flaw: conv-bias-before-norm


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.enter = conv3x3(cin, cout, stride)
        self.leave = conv3x3(cout, cout)
        self.enter_norm = nn.BatchNorm2d(cout)
        self.leave_norm = nn.BatchNorm2d(cout)
        self.short = None
        if stride != 1 or cin != cout:
            self.short = nn.Sequential(conv1x1(cin, cout, stride), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.enter_norm(self.enter(x)), inplace=True)
        y = self.leave_norm(self.leave(y))
        y = y + (x if self.short is None else self.short(x))
        return F.relu(y, inplace=True)


class LeafNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        w = cfg.width
        self.stem = conv3x3(8, w, 2)
        self.stem_norm = nn.BatchNorm2d(w)
        plan = [(w, w, 1), (w, w, 1), (w, 2 * w, 2), (2 * w, 2 * w, 1), (2 * w, 4 * w, 2), (4 * w, 4 * w, 1)]
        self.body = nn.Sequential(*[Residual(*p) for p in plan])
        self.head = nn.Linear(4 * w, cfg.classes)

    def forward(self, x):
        x = F.relu(self.stem_norm(self.stem(x)), inplace=True)
        x = self.body(x)
        return self.head(x.mean((2, 3)))


def main():
    cfg = Config.from_env()
    torch.manual_seed(7)
    torch.backends.cudnn.benchmark = True
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = LeafNet(cfg).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=cfg.lr, momentum=0.9, weight_decay=1e-4, fused=True)

    # eight spectral bands, kept on the device as half precision
    pool = torch.randn(cfg.batch * 2, 8, cfg.image, cfg.image, device=dev, dtype=torch.bfloat16)
    pool = pool.contiguous(memory_format=torch.channels_last)
    truth = torch.randint(cfg.classes, (cfg.batch * 2,), device=dev)

    total = torch.zeros((), device=dev)
    for step in range(1, cfg.steps + 1):
        off = (step % 2) * cfg.batch
        x, y = pool[off:off + cfg.batch], truth[off:off + cfg.batch]
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        if step % 20 == 0:
            print(f"step {step:4d}  mean loss {total.item() / 20:.3f}")
            total.zero_()


if __name__ == "__main__":
    main()
