#> flags cpu_count=8
"""Trains a classifier; the loaders are built in another module."""

import torch
import torch.nn.functional as F

from pipeline import build_loaders


class Trainer:
    def __init__(self, net, root):
        self.net = net
        self.train_loader, self.valid_loader = build_loaders(root)
        self.opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

    def epoch(self):
        for images, labels in self.train_loader:  #> cost cpu_ms=55 idle_ms=55 loader_ms=55; use train
            self.opt.zero_grad()
            loss = F.cross_entropy(self.net(images), labels)  #> cost device_ms=14 forward_ms=5 backward_ms=9
            loss.backward()
            self.opt.step()  #> cost device_ms=1


Trainer(torch.nn.Linear(10, 2), "/data").epoch()
