"""Momentum contrast with a ring buffer of negatives."""
import argparse
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class Bottle(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
        self.side = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return F.relu(self.main(x) + self.side(x), inplace=True)


def backbone(w, out=128):
    return nn.Sequential(Bottle(3, w, 2), Bottle(w, 2 * w, 1), Bottle(2 * w, 4 * w, 2), Bottle(4 * w, 8 * w, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * w, out))


class Contrast(nn.Module):
    def __init__(self, w, length, decay=0.999, tau=0.1):
        super().__init__()
        self.query = backbone(w)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("ring", F.normalize(torch.randn(length, 128), dim=1))
        self.decay, self.tau, self.at = decay, tau, 0

    @torch.no_grad()
    def advance(self):
        torch._foreach_lerp_(list(self.key.parameters()), list(self.query.parameters()), 1 - self.decay)

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=1)
        with torch.no_grad():
            k = F.normalize(self.key(b), dim=1)
        positive = (q * k).sum(1, keepdim=True).float()
        negative = (q @ self.ring.t()).float()
        logits = torch.cat((positive, negative), 1) / self.tau
        with torch.no_grad():
            self.ring[self.at:self.at + len(k)] = k.float()
        self.at = (self.at + len(k)) % len(self.ring)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


def two_views(photos, n):
    pick = torch.randint(len(photos), (n,), device=photos.device)
    x = photos[pick].to(torch.bfloat16).div_(255)
    return x, torch.addcmul(x.flip(-1), torch.randn_like(x), torch.full_like(x[:, :1, :1, :1], 0.1))


def main():
    s = os.environ.get("SMALL") == "1"
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=4 if s else 256)
    p.add_argument("--side", type=int, default=16 if s else 96)
    p.add_argument("--width", type=int, default=8 if s else 64)
    p.add_argument("--ring", type=int, default=32 if s else 16384)
    p.add_argument("--steps", type=int, default=30 if s else 90)
    a = p.parse_args()
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    photos = torch.randint(0, 256, (a.batch * 4, 3, a.side, a.side), dtype=torch.uint8, device=device)
    photos = photos.to(memory_format=torch.channels_last)
    model = Contrast(a.width, a.ring).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.query.parameters(), lr=0.05, momentum=0.9, fused=device.type == "cuda")
    for step in range(a.steps):
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(*two_views(photos, a.batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.advance()
        if step % 30 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
