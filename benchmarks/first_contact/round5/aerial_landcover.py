"""Land-cover maps from aerial imagery: dilated convolutions with a pixel-wise classifier."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    small = os.environ.get("SMALL") == "1"
    p = argparse.ArgumentParser()
    p.add_argument("--tile", type=int, default=32 if small else 384)
    p.add_argument("--batch-size", type=int, default=2 if small else 16)
    p.add_argument("--channels", type=int, default=8 if small else 64)
    p.add_argument("--classes", type=int, default=24)
    p.add_argument("--iterations", type=int, default=30 if small else 60)
    p.add_argument("--smoothing", type=float, default=0.0)
    return p.parse_args()


class PixelCriterion(nn.Module):
    """Class-balanced pixel loss."""

    def __init__(self, frequencies: torch.Tensor):
        super().__init__()
        self.register_buffer("w", (1.0 / frequencies) / (1.0 / frequencies).mean())

    def forward(self, scores, target):
        scores = scores.float()
        exps = torch.exp(scores - scores.max(dim=1, keepdim=True).values)  # flaw: hand-written-loss
        probs = exps / exps.sum(dim=1, keepdim=True)  # flaw: hand-written-loss
        hot = F.one_hot(target, scores.shape[1]).permute(0, 3, 1, 2)  # flaw: hand-written-loss
        nll = -(hot * torch.log(probs + 1e-9)).sum(dim=1)  # flaw: hand-written-loss
        weight = self.w[target]  # flaw: hand-written-loss
        return (nll * weight).sum() / weight.sum()  # flaw: hand-written-loss


class DilatedStack(nn.Module):
    def __init__(self, ch, classes):
        super().__init__()
        self.inp = nn.Sequential(nn.Conv2d(4, ch, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(ch), nn.ReLU(True))
        self.levels = nn.ModuleList()
        for d in (1, 2, 4, 1):
            self.levels.append(nn.Sequential(nn.Conv2d(ch, ch, 3, padding=d, dilation=d, bias=False),
                                             nn.BatchNorm2d(ch), nn.ReLU(True)))
        self.cls = nn.Conv2d(ch, classes, 1)

    def forward(self, x):
        x = self.inp(x)
        for level in self.levels:
            x = x + level(x)
        return F.interpolate(self.cls(x), scale_factor=2, mode="bilinear", align_corners=False)


def main():
    args = get_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(13)
    net = DilatedStack(args.channels, args.classes).to(device, memory_format=torch.channels_last)
    crit = PixelCriterion(torch.rand(args.classes, device=device) + 0.1).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=True)
    tiles = torch.randn(args.batch_size, 4, args.tile, args.tile, device=device, dtype=torch.bfloat16)
    tiles = tiles.contiguous(memory_format=torch.channels_last)
    cover = torch.randint(args.classes, (args.batch_size, args.tile, args.tile), device=device)
    for i in range(args.iterations):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = net(tiles)
        loss = crit(scores, cover)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 15 == 0:
            print("iteration", i, "loss", f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
