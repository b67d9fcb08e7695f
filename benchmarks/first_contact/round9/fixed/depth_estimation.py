"""Monocular depth: encoder-decoder with skip connections, scale-invariant log loss."""

import argparse
import logging

import torch
from torch import nn
from torch.nn import functional as F

log = logging.getLogger("depth")


class ConvNormAct(nn.Module):
    def __init__(self, cin, cout, kernel=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(cout)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.reduce = ConvNormAct(width, width // 2, 1)
        self.mix = ConvNormAct(width // 2, width // 2, 3)
        self.expand = ConvNormAct(width // 2, width, 1)

    def forward(self, x):
        return x + self.expand(self.mix(self.reduce(x)))


class DepthNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        w = [width, 2 * width, 4 * width]
        self.stem = ConvNormAct(3, width, 3, 2)
        self.encoder = nn.ModuleList(nn.Sequential(Bottleneck(c), Bottleneck(c)) for c in w)
        self.shrink = nn.ModuleList(ConvNormAct(a, b, 3, 2) for a, b in zip(w, w[1:]))
        self.widen = nn.ModuleList(ConvNormAct(b, a, 1) for a, b in zip(w, w[1:]))
        self.decoder = nn.ModuleList(nn.Sequential(Bottleneck(c), Bottleneck(c)) for c in w[:-1])
        self.head = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        x = self.stem(x)
        levels = []
        for i, stage in enumerate(self.encoder):
            x = stage(x if i == 0 else self.shrink[i - 1](x))
            levels.append(x)
        x = levels.pop()
        for i in reversed(range(len(levels))):
            x = self.decoder[i](levels[i] + F.interpolate(self.widen[i](x), scale_factor=2.0, mode="nearest"))
        return F.softplus(self.head(x).float()) + 1e-3


def silog(predicted, depth, weight=0.85):
    d = predicted.log() - depth.log()
    return (d.square().mean() - weight * d.mean().square()).clamp_min(1e-8).sqrt()


def run(args):
    device = torch.device(args.device)
    cuda = device.type == "cuda"
    h, w = args.height, args.width
    frames = torch.randint(0, 256, (args.frames, 3, h, w), dtype=torch.uint8, device=device)
    depths = torch.rand(args.frames, 1, h // 2, w // 2, device=device) * 9 + 1
    net = DepthNet(args.channels).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.01, fused=cuda)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    window = []
    for step in range(1, args.steps + 1):
        rows = torch.randint(0, args.frames, (args.batch,), device=device)
        images = frames[rows].to(memory_format=torch.channels_last).float().div_(127.5).sub_(1)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            predicted = net(images)
        loss = silog(predicted, depths[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step()
        window.append(loss.detach())
        if len(window) == 50:
            log.info("step %d  silog %.4f", step, torch.stack(window).mean().item())
            window.clear()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--height", type=int, default=384 if cuda else 32)
    parser.add_argument("--width", type=int, default=512 if cuda else 32)
    parser.add_argument("--frames", type=int, default=256 if cuda else 4)
    parser.add_argument("--batch", type=int, default=32 if cuda else 2)
    parser.add_argument("--channels", type=int, default=64 if cuda else 8)
    parser.add_argument("--steps", type=int, default=180 if cuda else 3)
    parser.add_argument("--lr", type=float, default=1e-3)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    run(parser.parse_args())
