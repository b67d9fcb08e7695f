"""A step that is an object, called; and a loss that is one too."""

import time

import torch
from torch import nn


class Loss:
    def __init__(self, pause):
        self.pause = pause

    def __call__(self, output):
        time.sleep(self.pause)  # = 6
        return output.square().mean()


class Step:
    def __init__(self, net, loss):
        self.net, self.loss = net, loss
        self.optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    @property
    def rate(self):
        time.sleep(0.003)  # = 3
        return self.optimizer.param_groups[0]["lr"]

    def __call__(self, batch):
        self.optimizer.zero_grad()
        loss = self.loss(self.net(batch))
        loss.backward()
        self.optimizer.step()
        return loss * self.rate

    def __getitem__(self, at):
        time.sleep(0.004)  # = 4
        return torch.full((8, 16), float(at % 3))

    def __len__(self):
        return 100000


step = Step(nn.Linear(16, 16), Loss(0.006))
for batch in step:
    step(batch)
