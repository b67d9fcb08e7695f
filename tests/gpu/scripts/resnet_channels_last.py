"""A small ResNet in channels_last under autocast: whole blocks, so that lines share their operators."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        h = F.silu(self.bn1(self.conv1(x)))  # only: aten::silu
        h = self.bn2(self.conv2(h))
        return F.hardswish(h + x)  # only: aten::hardswish


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 128, 3, padding=1)
        self.blocks = nn.ModuleList(Block(128) for _ in range(4))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        h = F.softplus(self.stem(x))  # only: aten::softplus
        for block in self.blocks:
            h = block(h)
        return self.head(h.amax((2, 3)))  # only: aten::amax


model = Net().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
x = torch.randn(64, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
y = torch.randint(10, (64,), device="cuda")
for step in range(2000):
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(x), y)  # only: aten::nll_loss_forward
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
