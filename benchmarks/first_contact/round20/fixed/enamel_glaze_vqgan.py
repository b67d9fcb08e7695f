"""Reconstruct photographs of enamel glazes with a small convolutional autoencoder that looks across the whole tile."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Res(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(size, size, 3, padding=1, bias=False),
            nn.BatchNorm2d(size),
            nn.SiLU(inplace=True),
            nn.Conv2d(size, size, 3, padding=1, bias=False),
            nn.BatchNorm2d(size),
        )

    def forward(self, x):
        return F.silu(x + self.body(x))


class LookAround(nn.Module):
    """Every place of the map reads from every other one."""

    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x):
        b, c, h, w = x.shape
        places = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(places)).chunk(3, dim=-1)
        seen = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        return x + self.out(seen).transpose(1, 2).view(b, c, h, w)


class Glazes(nn.Module):
    def __init__(self, size=256, code=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, size, 4, stride=4), Res(size), Res(size), LookAround(size), Res(size), nn.Conv2d(size, code, 1)
        )
        self.decoder = nn.Sequential(
            nn.Conv2d(code, size, 1), Res(size), LookAround(size), Res(size), Res(size), nn.Conv2d(size, 48, 1), nn.PixelShuffle(4)
        )

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code), code


class Objective(nn.Module):
    def __init__(self, pull=1e-3, edges=0.5):
        super().__init__()
        self.pull, self.edges = pull, edges

    def forward(self, made, code, wanted):
        loss = F.l1_loss(made, wanted) + self.pull * code.float().square().mean()
        across = F.l1_loss(made[..., 1:] - made[..., :-1], wanted[..., 1:] - wanted[..., :-1])
        return loss + self.edges * across


def tiles(count, side, rng):
    """Crackle patterns: a coarse colour field plus thin dark lines where a second field crosses zero."""
    colour = torch.rand(count, 3, side // 32, side // 32, generator=rng, device=device)
    lines = torch.randn(count, 1, side // 8, side // 8, generator=rng, device=device)
    colour = F.interpolate(colour, size=(side, side), mode="bilinear")
    lines = F.interpolate(lines, size=(side, side), mode="bilinear")
    return (colour * (1 - torch.exp(-((lines * 12) ** 2)))).contiguous(memory_format=torch.channels_last)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, default=256)
    args = parser.parse_args()

    torch.manual_seed(8)
    torch.backends.cudnn.benchmark = True
    rng = torch.Generator(device=device).manual_seed(1)
    photos = tiles(args.batch * 40, args.side, rng)
    model = Glazes().to(device, memory_format=torch.channels_last)
    objective = Objective()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, fused=True)
    for step in range(args.steps):
        at = step % 40 * args.batch
        batch = photos[at : at + args.batch]
        with torch.autocast(device, dtype=torch.bfloat16):
            made, code = model(batch)
            loss = objective(made, code, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
