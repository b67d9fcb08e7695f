"""Super-resolution by residual blocks that a builder function makes."""
import torch
from torch import nn


def conv_bn(cin, cout, kernel=3, act=True):
    mods = [
        nn.Conv2d(cin, cout, kernel, padding="same"),  # flaw: conv-bias-before-norm
        nn.BatchNorm2d(cout),
    ]
    if act:
        mods.append(nn.LeakyReLU(0.1, inplace=True))
    return mods


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(*conv_bn(c, c), *conv_bn(c, c, act=False))

    def forward(self, x):
        return x + self.body(x)


class SuperRes(nn.Module):
    def __init__(self, c=64, blocks=6, factor=2):
        super().__init__()
        self.net = nn.Sequential(
            *conv_bn(3, c, 5), *[Residual(c) for _ in range(blocks)], nn.Conv2d(c, 3 * factor**2, 3, padding=1), nn.PixelShuffle(factor)
        )

    def forward(self, x):
        return self.net(x)


def main():
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = SuperRes().to(device).to(memory_format=torch.channels_last)
    opt = torch.optim.Adam(net.parameters(), 1e-4, fused=True)
    small = torch.rand(32, 3, 128, 128, device=device).to(memory_format=torch.channels_last)
    large = torch.rand(32, 3, 256, 256, device=device).to(memory_format=torch.channels_last)
    for _ in range(320):
        with torch.autocast(device, torch.bfloat16):
            out = net(small)
        loss = nn.functional.l1_loss(out.float(), large)
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
