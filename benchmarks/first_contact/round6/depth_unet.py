import os
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class ConvOptions:
    kernel_size: int = 3
    padding: int = 1
    bias: bool = True  # flaw: conv-bias-before-norm


@dataclass
class Options:
    conv: ConvOptions
    width: int = 32
    levels: int = 3
    batch: int = 32
    side: int = 256
    steps: int = 70


def unit(i: int, o: int, conv: ConvOptions) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(i, o, **vars(conv)), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class DepthNet(nn.Module):
    def __init__(self, opt: Options) -> None:
        super().__init__()
        widths = [opt.width << k for k in range(opt.levels)]
        self.stem = unit(8, opt.width, opt.conv)
        self.down = nn.ModuleList()
        self.up = nn.ModuleList()
        for a, b in zip(widths, widths[1:]):
            self.down.append(nn.Sequential(unit(a, b, opt.conv), unit(b, b, opt.conv)))
            self.up.insert(0, nn.Sequential(unit(a + b, a, opt.conv), unit(a, a, opt.conv)))
        self.head = nn.Conv2d(opt.width, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = [self.stem(x)]
        for block in self.down:
            skips.append(block(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), skips.pop()], 1))
        return self.head(x)[:, :1]


def scale_invariant(pred: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    d = pred.float() - goal
    return d.square().mean() - 0.5 * d.mean((1, 2, 3)).square().mean()


def rooms(opt: Options, device: torch.device, count: int = 3):
    pool = []
    for _ in range(count):
        depth = F.interpolate(torch.rand(opt.batch, 1, 8, 8, device=device), size=opt.side, mode="bilinear")
        image = F.pad(torch.cat([depth, depth.flip(2), depth.flip(3)], 1), (0, 0, 0, 0, 0, 5))
        pool.append((image.to(torch.bfloat16).contiguous(memory_format=torch.channels_last), depth))
    while True:
        yield from pool


def main() -> None:
    opt = Options(ConvOptions())
    if os.environ.get("SMALL"):
        opt.width, opt.levels, opt.batch, opt.side, opt.steps = 4, 2, 2, 16, 30
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = DepthNet(opt).to(device, memory_format=torch.channels_last)
    adam = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    total = torch.zeros((), device=device)
    for _, (image, depth) in zip(range(opt.steps), rooms(opt, device)):
        with torch.autocast(device.type, torch.bfloat16):
            pred = net(image)
        loss = scale_invariant(pred, depth)
        adam.zero_grad()
        loss.backward()
        adam.step()
        total += loss.detach()
    print(f"loss {total.item() / opt.steps:.5f}")


if __name__ == "__main__":
    main()
