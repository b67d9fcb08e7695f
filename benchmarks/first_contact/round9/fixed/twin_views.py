"""Redundancy-reduction pre-training (two views of an image, cross-correlation close to identity) with LARS."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
SIZE, BATCH, STEPS, WIDTH, DEPTHS, PROJ = (128, 48, 300, 64, (3, 4, 6, 3), 2048) if CUDA else (32, 4, 3, 8, (1, 1), 32)


class LARS(optim.Optimizer):
    def __init__(self, params, lr, weight_decay=0.0, momentum=0.9, eta=0.001):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, eta=eta))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            params = g["params"]
            grads = [p.grad for p in params]
            wide = [i for i, p in enumerate(params) if p.ndim > 1]
            matrices = [params[i] for i in wide]
            updates = torch._foreach_add([grads[i] for i in wide], matrices, alpha=g["weight_decay"])
            param_norm = torch.stack(torch._foreach_norm(matrices))
            update_norm = torch.stack(torch._foreach_norm(updates))
            q = torch.where((param_norm > 0) & (update_norm > 0), g["eta"] * param_norm / update_norm, 1.0)
            torch._foreach_mul_(updates, list(q.unbind()))
            for i, update in zip(wide, updates):
                grads[i] = update
            if not self.state:
                for p in params:
                    self.state[p]["mu"] = torch.zeros_like(p)
            mus = [self.state[p]["mu"] for p in params]
            torch._foreach_mul_(mus, g["momentum"])
            torch._foreach_add_(mus, grads)
            torch._foreach_add_(params, mus, alpha=-g["lr"])


class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True))
        self.b = nn.Sequential(nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(inplace=True))
        self.c = nn.Sequential(nn.Conv2d(mid, 4 * mid, 1, bias=False), nn.BatchNorm2d(4 * mid))
        self.short = nn.Identity()
        if stride > 1 or cin != 4 * mid:
            self.short = nn.Sequential(nn.Conv2d(cin, 4 * mid, 1, stride, bias=False), nn.BatchNorm2d(4 * mid))

    def forward(self, x):
        return F.relu(self.c(self.b(self.a(x))) + self.short(x), inplace=True)


class TwinNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        cin = WIDTH
        for i, depth in enumerate(DEPTHS):
            for j in range(depth):
                layers.append(Bottleneck(cin, WIDTH * 2**i, 2 if i and not j else 1))
                cin = 4 * WIDTH * 2**i
        self.backbone = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.projector = nn.Sequential(
            nn.Linear(cin, PROJ, bias=False), nn.BatchNorm1d(PROJ), nn.ReLU(inplace=True), nn.Linear(PROJ, PROJ, bias=False)
        )
        self.bn = nn.BatchNorm1d(PROJ, affine=False)

    def forward(self, y1, y2):
        z1, z2 = self.projector(self.backbone(torch.cat([y1, y2]))).chunk(2)
        c = (self.bn(z1).T @ self.bn(z2)).float() / len(z1)
        diagonal = torch.diagonal(c)
        on_diag = (diagonal - 1).square().sum()
        off_diag = c.square().sum() - diagonal.square().sum()
        return on_diag + 0.0051 * off_diag


def view(images):
    flip = images.flip(-1) if torch.rand(()) < 0.5 else images
    gain = torch.empty(len(images), 3, 1, 1, device=images.device).uniform_(0.7, 1.3)
    shift = torch.randint(-8, 9, (2,)).tolist()
    return (flip.roll(shift, (2, 3)).to(torch.bfloat16) * gain.to(torch.bfloat16) / 127.5 - 1).contiguous(memory_format=torch.channels_last)


def learning_rate(step):
    warmup = STEPS // 10
    return 0.2 * min((step + 1) / max(warmup, 1), 0.5 * (1 + math.cos(math.pi * step / STEPS)))


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
images = torch.randint(0, 256, (2048 if CUDA else 8, 3, SIZE, SIZE), dtype=torch.uint8, device=DEVICE)
model = TwinNet().to(DEVICE, memory_format=torch.channels_last)
optimizer = LARS(model.parameters(), lr=0.0, weight_decay=1e-6)
total = torch.zeros((), device=DEVICE)
for step in range(STEPS):
    optimizer.param_groups[0]["lr"] = learning_rate(step)
    batch = images[torch.randint(0, len(images), (BATCH,), device=DEVICE)]
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        loss = model(view(batch), view(batch))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
    if (step + 1) % 50 == 0:
        print(f"step {step + 1}  loss {total.item() / (step + 1):.2f}")
print("mean loss", total.item() / STEPS)
