"""Barlow Twins pre-training with the LARS optimizer."""

import math

import torch
import torch.nn.functional as F
from torch import nn, optim


class LARS(optim.Optimizer):
    def __init__(self, params, lr=0.2, weight_decay=1e-6, momentum=0.9, eta=0.001):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, eta=eta))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:  # flaw: parameter-loop|per-tensor-optimizer
                dp = p.grad  # flaw: parameter-loop|per-tensor-optimizer
                if dp is None:
                    continue
                if p.ndim > 1:
                    dp = dp.add(p, alpha=g["weight_decay"])  # flaw: parameter-loop|per-tensor-optimizer
                    param_norm = torch.norm(p)  # flaw: parameter-loop|per-tensor-optimizer
                    update_norm = torch.norm(dp)  # flaw: parameter-loop|per-tensor-optimizer
                    one = torch.ones_like(param_norm)  # flaw: parameter-loop|per-tensor-optimizer
                    q = torch.where(  # flaw: parameter-loop|per-tensor-optimizer
                        param_norm > 0.0,  # flaw: parameter-loop|per-tensor-optimizer
                        torch.where(update_norm > 0, (g["eta"] * param_norm / update_norm), one),  # flaw: parameter-loop|per-tensor-optimizer
                        one,  # flaw: parameter-loop|per-tensor-optimizer
                    )  # flaw: parameter-loop|per-tensor-optimizer
                    dp = dp.mul(q)  # flaw: parameter-loop|per-tensor-optimizer
                state = self.state[p]
                if "mu" not in state:
                    state["mu"] = torch.zeros_like(p)
                state["mu"].mul_(g["momentum"]).add_(dp)  # flaw: parameter-loop|per-tensor-optimizer
                p.add_(state["mu"], alpha=-g["lr"])  # flaw: parameter-loop|per-tensor-optimizer


class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride):
        super().__init__()
        cout = 4 * mid
        self.conv1, self.bn1 = nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv2, self.bn2 = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv3, self.bn3 = nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = nn.Identity()
        if stride > 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        return F.relu(self.bn3(self.conv3(y)) + self.down(x), inplace=True)


def resnet(width, depths):
    layers, cin = [nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)], width
    for i, depth in enumerate(depths):
        mid = width * 2**i
        for j in range(depth):
            layers.append(Bottleneck(cin, mid, 2 if i > 0 and j == 0 else 1))
            cin = 4 * mid
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), cin


class BarlowTwins(nn.Module):
    def __init__(self, width, depths, proj, lambd=0.0051):
        super().__init__()
        self.backbone, dim = resnet(width, depths)
        self.projector = nn.Sequential(
            nn.Linear(dim, proj, bias=False), nn.BatchNorm1d(proj), nn.ReLU(inplace=True),
            nn.Linear(proj, proj, bias=False), nn.BatchNorm1d(proj), nn.ReLU(inplace=True),
            nn.Linear(proj, proj, bias=False),
        )  # fmt: skip
        self.bn = nn.BatchNorm1d(proj, affine=False)
        self.lambd = lambd

    def forward(self, y1, y2):
        z1, z2 = self.projector(self.backbone(torch.cat([y1, y2]))).chunk(2)
        c = (self.bn(z1).T @ self.bn(z2)).float() / len(z1)
        on_diag = c.diagonal().add(-1).square().sum()
        return on_diag + self.lambd * (c.square().sum() - c.diagonal().square().sum())


def augment(images):
    x = images.to(torch.float32, memory_format=torch.channels_last).div_(127.5).sub_(1)
    gain = torch.rand(len(x), 3, 1, 1, device=x.device) * 0.8 + 0.6
    return x.mul_(gain).flip(-1)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    width, depths, proj, batch, size, steps = (64, (3, 4, 6, 3), 2048, 64, 64, 200) if gpu else (8, (1, 1), 32, 4, 16, 3)
    model = BarlowTwins(width, depths, proj).to(device, memory_format=torch.channels_last)
    optimizer = LARS(model.parameters())
    images = torch.randint(0, 256, (4096 if gpu else 8, 3, size, size), dtype=torch.uint8, device=device)
    for step in range(steps):
        for g in optimizer.param_groups:
            g["lr"] = 0.2 * 0.5 * (1 + math.cos(math.pi * step / steps))
        picked = images[torch.randint(0, len(images), (batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(augment(picked), augment(picked))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
