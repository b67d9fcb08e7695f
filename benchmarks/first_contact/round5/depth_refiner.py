"""Monocular depth refinement: a deep, thin convolutional stack."""
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Hyper:
    layers: int = 48
    ch: int = 64
    side: int = 96
    batch: int = 24
    steps: int = 70
    lr: float = 1e-3
    decay: float = 0.02


class Step(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(c)

    def forward(self, x):
        return x + F.relu(self.bn(self.conv(x)))


class Refiner(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.enter = nn.Conv2d(4, hp.ch, 3, padding=1)
        self.steps = nn.Sequential(*[Step(hp.ch) for _ in range(hp.layers)])
        self.leave = nn.Conv2d(hp.ch, 1, 3, padding=1)

    def forward(self, rgbd):
        return rgbd[:, 3:] + self.leave(self.steps(self.enter(rgbd)))


def configure(net, hp):
    """Weight decay for matrices and filters only, and a gentler rate for the last layer."""
    groups = []
    for name, p in net.named_parameters():
        groups.append({  # flaw: per-tensor-optimizer
            "params": [p],
            "weight_decay": hp.decay if p.ndim > 1 else 0.0,
            "lr": hp.lr * (0.1 if name.startswith("leave") else 1.0),
        })
    return torch.optim.AdamW(groups, fused=True)


def scene(hp, device):
    g = torch.Generator(device).manual_seed(8)
    rgb = torch.rand(hp.batch, 3, hp.side, hp.side, device=device, generator=g)
    depth = rgb.mean(1, keepdim=True)
    rough = F.avg_pool2d(depth, 5, 1, 2)
    x = torch.cat((rgb, rough), 1).contiguous(memory_format=torch.channels_last)
    return x, depth


def main(hp):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    net = Refiner(hp).to(device, memory_format=torch.channels_last)
    opt = configure(net, hp)
    x, depth = scene(hp, device)
    for step in range(hp.steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = net(x)
        loss = F.huber_loss(out.float(), depth, delta=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 23 == 0:
            print(f"{step:>3} {loss.item():.5f}")


if __name__ == "__main__":
    main(Hyper(layers=4, ch=8, side=16, batch=2, steps=30) if os.environ.get("SMALL") == "1" else Hyper())
