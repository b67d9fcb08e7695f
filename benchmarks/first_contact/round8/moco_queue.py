"""Momentum contrast (MoCo v2) with a queue of negatives, GPU-resident images."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")


def conv_bn(cin, cout, k, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, k, stride, k // 2, bias=False), nn.BatchNorm2d(cout))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.first, self.second = conv_bn(cin, cout, 3, stride), conv_bn(cout, cout, 3)
        self.skip = conv_bn(cin, cout, 1, stride) if stride > 1 or cin != cout else nn.Identity()

    def forward(self, x):
        y = self.second(F.relu(self.first(x), inplace=True))
        return F.relu(y + self.skip(x), inplace=True)


class Encoder(nn.Module):
    def __init__(self, w, dim):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, w, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        widths = (w, w, 2 * w, 2 * w, 4 * w, 4 * w, 8 * w, 8 * w)
        blocks = [Residual(a, b, 2 if a < b else 1) for a, b in zip((w, *widths), widths)]
        self.body = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.Linear(8 * w, 8 * w), nn.ReLU(inplace=True), nn.Linear(8 * w, dim))

    def forward(self, x):
        return F.normalize(self.head(self.body(self.stem(x)).mean(dim=(2, 3))), dim=1)


class MoCo(nn.Module):
    def __init__(self, width=64, dim=128, queue=16384, momentum=0.99, temperature=0.2):
        super().__init__()
        self.query = Encoder(width, dim)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(queue, dim), dim=1))
        self.momentum, self.temperature, self.place = momentum, temperature, 0

    @torch.no_grad()
    def keys(self, x):
        torch._foreach_lerp_(list(self.key.parameters()), list(self.query.parameters()), 1 - self.momentum)
        order = torch.randperm(len(x), device=x.device)
        k = self.key(x[order].contiguous(memory_format=torch.channels_last))
        return k[order.argsort()]

    @torch.no_grad()
    def enqueue(self, k):
        self.queue[self.place : self.place + len(k)] = k
        self.place = (self.place + len(k)) % len(self.queue)

    def forward(self, view_q, view_k):
        k = self.keys(view_k)
        q = self.query(view_q)
        positive = (q * k).sum(dim=1, keepdim=True)
        negative = q @ self.queue.T
        top = torch.logsumexp(negative.float() / self.temperature, dim=1)
        positive = positive.squeeze(1).float() / self.temperature
        loss = (torch.logaddexp(top, positive) - positive).mean()
        return loss, k


def view(images):
    x = images.to(torch.bfloat16, memory_format=torch.channels_last).div_(127.5).sub_(1)
    return x.mul_(torch.rand(len(x), 3, 1, 1, device=x.device, dtype=x.dtype) * 0.8 + 0.6)


if __name__ == "__main__":
    torch.manual_seed(0)
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    side, batch, steps = (192, 256, 100) if gpu else (32, 4, 3)
    model = (MoCo() if gpu else MoCo(4, 16, 32)).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.query.parameters(), 0.03, momentum=0.9, weight_decay=1e-4, fused=True)
    images = torch.randint(0, 256, (4096 if gpu else 8, 3, side, side), dtype=torch.uint8, device=device)
    for step in range(steps):
        picked = images[torch.randint(0, len(images), (batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss, keys = model(view(picked), view(picked.flip(-1)))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        model.enqueue(keys)
        if step % 25 == 0:
            print(f"step {step}: contrastive loss {loss.item():.4f}")
