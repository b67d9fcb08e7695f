"""Images made on the host and copied, once from pageable and once from pinned memory, into a small ResNet."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.first(x))
        y = self.norm(self.second(y))
        return F.relu(x + y)


def batch(images, labels):
    pick = torch.randint(0, len(images), (64,))
    x = images[pick]
    flip = torch.rand(64) < 0.5
    x[flip] = x[flip].flip(-1)
    return x, labels[pick]


def main():
    torch.manual_seed(0)
    images, labels = torch.rand(512, 3, 96, 96), torch.randint(0, 10, (512,))
    fixed = torch.rand(64, 64, 96, 96).pin_memory()
    stem = nn.Conv2d(3, 64, 3, padding=1).cuda()
    body = nn.Sequential(Block(64), Block(64), Block(64)).cuda()
    head = nn.Linear(64, 10).cuda()
    everything = [*stem.parameters(), *body.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(everything, lr=1e-3, momentum=0.9)
    while True:
        x, y = batch(images, labels)
        x = x.cuda()
        y = y.cuda()
        mask = fixed.cuda(non_blocking=True)
        h = stem(x)
        h = h * (mask > 0.1)
        h = body(h)
        out = head(h.mean((2, 3)))
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


main()
