"""Down and up again with convolutions, norms and skips; images blurred before by hand."""

import torch
import torch.nn.functional as F
from torch import nn


def blur(images):
    for _ in range(4):
        images = (images + images.roll(1, -1) + images.roll(-1, -1)) / 3
        images = (images + images.roll(1, -2) + images.roll(-1, -2)) / 3
    return images


class Double(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.a = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.b = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = F.relu(self.a(x))
        x = self.b(x)
        return F.relu(self.norm(x))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.up = Double(1, 8), Double(8, 16), Double(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.middle(F.max_pool2d(skip, 2))
        wide = F.interpolate(deep, scale_factor=2, mode="bilinear")
        return self.out(self.up(torch.cat([skip, wide], 1)))


def main():
    net = UNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    sharp = torch.rand(4, 1, 64, 64)
    while True:
        soft = blur(sharp)
        restored = net(soft)
        loss = F.mse_loss(restored, sharp) + 0.1 * (restored.diff(dim=-1).abs().mean())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
