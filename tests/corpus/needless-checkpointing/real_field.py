# corpus: run, may launch-bound small-batch unfused-elementwise slow-sample-line gc-pause-in-step
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass
class Plan:
    width: int = 256
    recompute: bool = True  #> found


class Block(nn.Module):
    recompute = False

    def update(self, x):
        raise NotImplementedError

    def forward(self, x):
        if self.recompute and self.training:
            return checkpoint(self.update, x, use_reentrant=False)
        return self.update(x)


class Wide(Block):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def update(self, x):
        return x + self.down(self.up(x).tanh())


def main(plan):
    net = nn.Sequential(*(Wide(plan.width) for _ in range(4)))
    for block in net:
        block.recompute = plan.recompute
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    for _ in range(2000):
        optimizer.zero_grad()
        net(torch.randn(256, plan.width)).square().mean().backward()
        optimizer.step()


main(Plan())
