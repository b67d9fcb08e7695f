"""PointNet++-like set abstraction: shared MLPs as 1x1 convolutions over (batch, channel, point, neighbour)."""
import os
from typing import NamedTuple

import torch
import torch.nn as nn


class Settings(NamedTuple):
    shapes: int
    centres: int
    neighbours: int
    widths: tuple
    batch: int
    iterations: int
    classes: int = 40


SETTINGS = {
    "tiny": Settings(32, 16, 8, (8, 16), 8, 6),
    "h100": Settings(2048, 512, 32, (64, 64, 96, 128), 128, 900),
}


class SharedMLP(nn.Sequential):
    """conv-norm-act over the grouped points"""

    def __init__(self, c_in, widths):
        layers = []
        for c_out in widths:
            layers.append(nn.Conv2d(c_in, c_out, kernel_size=1, bias=False))
            layers.append(nn.BatchNorm2d(c_out))
            layers.append(nn.ReLU(inplace=True))
            c_in = c_out
        super().__init__(*layers)


class SetAbstraction(nn.Module):
    def __init__(self, c_in, widths):
        super().__init__()
        self.mlp = SharedMLP(c_in, widths)

    def forward(self, grouped):
        return self.mlp(grouped).amax(-1)


class Classifier(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.local = SetAbstraction(8, s.widths)
        top = s.widths[-1]
        self.head = nn.Sequential(nn.Linear(top, 2 * top), nn.ReLU(inplace=True), nn.Linear(2 * top, s.classes))

    def forward(self, grouped):
        return self.head(self.local(grouped).amax(-1))


def grouped_clouds(s, device):
    """Neighbourhood offsets, normals and densities as the sampler left them, features last."""
    g = torch.Generator(device=device).manual_seed(2)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    label = torch.randint(0, s.classes, (s.shapes,), device=device, generator=g)
    x = torch.randn(s.shapes, s.centres, s.neighbours, 8, device=device, generator=g).to(dtype)
    x += (label.view(-1, 1, 1, 1) / s.classes).to(dtype)
    return x, label


def fresh(net, seed=0):
    torch.manual_seed(seed)
    for m in net.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(m.weight)
            if m.bias is not None:
                nn.init.zeros_(m.bias)
    return net


def batches(x, y, s):
    while True:
        order = torch.randperm(s.shapes, device=x.device)
        for pick in order.split(s.batch):
            yield x[pick].permute(0, 3, 1, 2), y[pick]


def train():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    s = SETTINGS["tiny" if os.environ.get("TINY") == "1" else "h100"]
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    x, y = grouped_clouds(s, device)
    net = fresh(Classifier(s)).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device == "cuda")
    lossf = nn.CrossEntropyLoss()
    avg = torch.zeros((), device=device)
    for it, (xb, yb) in zip(range(s.iterations), batches(x, y, s)):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = lossf(net(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        avg.lerp_(loss.detach(), 0.1 if it else 1.0)
    print(f"smoothed loss {avg.item():.4f}")


if __name__ == "__main__":
    train()
