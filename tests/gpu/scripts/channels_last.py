"""A convolutional net in channels_last under autocast; each marked line has an operator of its own."""

import torch
from torch import nn
from torch.nn import functional as F

first = nn.Conv2d(3, 64, 3, padding=1).cuda()
second = nn.Conv2d(64, 128, 3, padding=1).cuda()
head = nn.Linear(128, 10).cuda()
net = nn.ModuleList([first, second, head]).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x = torch.randn(32, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
y = torch.randint(10, (32,), device="cuda")
for step in range(2000):
    with torch.autocast("cuda", torch.bfloat16):
        h = F.silu(first(x))  # only: aten::silu
        h = F.hardswish(second(h))  # only: aten::hardswish
        h = F.adaptive_avg_pool2d(h, 1).flatten(1)  # only: aten::mean
        loss = F.cross_entropy(head(h), y)  # only: aten::nll_loss_forward
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
