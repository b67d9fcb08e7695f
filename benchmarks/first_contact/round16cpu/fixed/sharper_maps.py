"""Super-resolution of aerial photographs with a feature (perceptual) loss."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6 if os.environ.get("TINY") else 100)
parser.add_argument("--size", type=int, default=8 if os.environ.get("TINY") else 32)
parser.add_argument("--batch", type=int, default=2 if os.environ.get("TINY") else 4)
parser.add_argument("--weight", type=float, default=0.1)


class Upscaler(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2),
        )

    def forward(self, low):
        return self.body(low) + F.interpolate(low, scale_factor=2, mode="bilinear")


def feature_net(seed=11):
    """Stands for the trained network whose features we compare."""
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 48, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1),
    )
    torch.random.set_rng_state(state)
    return net.eval().requires_grad_(False)


class PerceptualLoss(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward(self, image, truth):
        ours = self.features(image)
        theirs = self.features(truth)
        return F.mse_loss(ours, theirs)


def photographs(args):
    g = torch.Generator().manual_seed(5)
    for _ in range(args.steps):
        rough = torch.rand(args.batch, 3, args.size // 4, args.size // 4, generator=g)
        yield F.interpolate(rough, size=2 * args.size, mode="bicubic").contiguous(memory_format=torch.channels_last)


def main(args):
    torch.manual_seed(0)
    net = Upscaler().to(memory_format=torch.channels_last)
    perceptual = PerceptualLoss(feature_net().to(memory_format=torch.channels_last))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for i, truth in enumerate(photographs(args)):
        guess = net(F.avg_pool2d(truth, 2))
        loss = F.l1_loss(guess, truth) + args.weight * perceptual(guess, truth)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 25 == 0:
            print(f"{i:4d}  {loss.item():.5f}")
    print(f"last  {loss.item():.5f}")


if __name__ == "__main__":
    main(parser.parse_args())
