"""Monocular depth: encoder-decoder with a scale-invariant loss."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

REGISTRY = {}


def register(cls):
    REGISTRY[cls.__name__.lower()] = cls
    return cls


def conv_bn(cin, cout, stride=1):
    conv = nn.Conv2d(cin, cout, 3, stride, 1)  # flaw: conv-bias-before-norm
    return nn.Sequential(conv, nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


@register
class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.s1 = nn.Sequential(conv_bn(3, width), conv_bn(width, width))
        self.s2 = nn.Sequential(conv_bn(width, 2 * width, 2), conv_bn(2 * width, 2 * width))
        self.s3 = nn.Sequential(conv_bn(2 * width, 4 * width, 2), conv_bn(4 * width, 4 * width))

    def forward(self, x):
        a = self.s1(x)
        b = self.s2(a)
        return a, b, self.s3(b)


@register
class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.u2 = conv_bn(6 * width, 2 * width)
        self.u1 = nn.Sequential(conv_bn(3 * width, width), conv_bn(width, width))
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, a, b, c):
        x = self.u2(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1))
        x = self.u1(torch.cat([F.interpolate(x, scale_factor=2.0), a], 1))
        return self.out(x).squeeze(1)


class DepthNet(nn.Module):
    def __init__(self, width, encoder="encoder", decoder="decoder"):
        super().__init__()
        self.encoder = REGISTRY[encoder](width)
        self.decoder = REGISTRY[decoder](width)

    def forward(self, x):
        return self.decoder(*self.encoder(x))


def silog(predicted, target, weight=0.85):
    d = predicted.float() - target
    return d.square().mean() - weight * d.mean().square()


def parse():
    cuda = torch.cuda.is_available()
    p = argparse.ArgumentParser()
    p.add_argument("--width", type=int, default=48 if cuda else 4)
    p.add_argument("--batch", type=int, default=16 if cuda else 2)
    p.add_argument("--side", type=int, default=256 if cuda else 32)
    p.add_argument("--steps", type=int, default=150 if cuda else 3)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--device", default="cuda" if cuda else "cpu")
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model = DepthNet(args.width).to(args.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, fused=args.device == "cuda")
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.steps)
    scenes = torch.rand(4, args.batch, 3, args.side, args.side, device=args.device)
    depths = F.avg_pool2d(scenes.mean(2), 9, 1, 4).log()
    for step in range(args.steps):
        image = scenes[step % 4].contiguous(memory_format=torch.channels_last)
        with torch.autocast(args.device, dtype=torch.bfloat16):
            predicted = model(image)
        loss = silog(predicted, depths[step % 4])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"{step:4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
