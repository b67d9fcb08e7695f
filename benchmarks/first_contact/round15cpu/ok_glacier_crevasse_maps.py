"""Segments crevasses on radar tiles of glaciers with a small encoder-decoder."""
import os
import torch
from torch import nn
import torch.nn.functional as F

TINY = bool(os.environ.get("TINY"))
SIDE, TILES, ROUNDS = (16, 2, 3) if TINY else (64, 8, 280)


class Down(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.GroupNorm(4, b), nn.ReLU(inplace=True))


class CrevasseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Down(2, 24)
        self.second = Down(24, 48)
        self.centre = nn.Conv2d(48, 48, 3, padding=1)
        self.join = nn.Conv2d(72, 24, 3, padding=1)
        self.mask = nn.Conv2d(24, 1, 1)

    def forward(self, tiles):
        a = self.first(tiles)
        b = F.relu(self.centre(self.second(a)))
        b = F.interpolate(b, scale_factor=2, mode="nearest")
        c = F.relu(self.join(torch.cat((a, b), 1)))
        return F.interpolate(self.mask(c), scale_factor=2, mode="bilinear")


def ice():
    across = torch.linspace(0, 1, SIDE)
    for _ in range(ROUNDS):
        slant, place = torch.rand(2, TILES, 1, 1).unbind(0)
        gap = (across[:, None] * slant + across * (1 - slant) - place).abs() < 0.05
        gap = gap[:, None].float()
        yield torch.cat((gap, gap), 1) + 0.7 * torch.randn(TILES, 2, SIDE, SIDE), gap


def main():
    torch.manual_seed(18)
    net = CrevasseNet().to(memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
    for r, (tiles, gap) in enumerate(ice()):
        loss = F.binary_cross_entropy_with_logits(net(tiles.contiguous(memory_format=torch.channels_last)), gap)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if r % 25 == 0:
            print(r, f"{loss.item():.4f}")
    print("ice", f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
