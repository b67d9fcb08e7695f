"""Phone labels for field recordings: an encoder over filter-bank frames, framewise training."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn


class Stage(nn.Module):
    """Base of the encoder's stages: entry scaling, body, residual."""

    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def standardise(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gain, self.shift, 1e-5)

    def body(self, x):
        raise NotImplementedError

    def forward(self, x):
        return x + self.body(self.standardise(x))


class Attend(Stage):
    def __init__(self, width, heads):
        super().__init__(width)
        self.heads = heads
        self.inward = nn.Linear(width, 3 * width, bias=False)
        self.outward = nn.Linear(width, width)

    def body(self, x):
        b, t, w = x.shape
        q, k, v = self.inward(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.outward(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, w))


class Digest(Stage):
    def __init__(self, width):
        super().__init__(width)
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))

    def body(self, x):
        return self.net(x)


class Tagger(nn.Module):
    def __init__(self, mels, width, depth, phones):
        super().__init__()
        self.entry = nn.Linear(mels, width)
        stages = []
        for _ in range(depth):
            stages += [Attend(width, max(1, width // 64)), Digest(width)]
        self.stages = nn.Sequential(*stages)
        self.phones = nn.Linear(width, phones)

    def forward(self, frames):
        return self.phones(self.stages(self.entry(frames)))


def main():
    p = argparse.ArgumentParser()
    small = os.environ.get("TINY") == "1"
    p.add_argument("--clips", type=int, default=2 if small else 48)
    p.add_argument("--frames", type=int, default=32 if small else 1024)
    p.add_argument("--width", type=int, default=64 if small else 512)
    p.add_argument("--depth", type=int, default=1 if small else 6)
    p.add_argument("--steps", type=int, default=4 if small else 270)
    a = p.parse_args()
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    net = Tagger(80, a.width, a.depth, 48).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, weight_decay=0.02, fused=True)
    bank = torch.randn(4, a.clips, a.frames, 80, device=dev)
    says = torch.randint(0, 48, (4, a.clips, a.frames), device=dev)
    total = torch.zeros((), device=dev)
    for i in range(a.steps):
        with torch.autocast(dev.type, torch.bfloat16):
            loss = F.cross_entropy(net(bank[i % 4]).flatten(0, 1), says[i % 4].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        total += loss.detach()
    print(f"{a.steps} steps, mean cross entropy {total.item() / a.steps:.4f}")


if __name__ == "__main__":
    main()
