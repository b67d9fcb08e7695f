"""The training loop."""

from dataclasses import asdict

import torch
from torch.nn import functional as F

from speech.data import loader
from speech.net import Spotter


class Engine:
    def __init__(self, config):
        self.config = config
        self.device = torch.device("cuda")
        self.net = Spotter(config.channels, config.depth, config.keywords).to(self.device, torch.bfloat16)
        self.net.compile()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), **asdict(config.optimizer))
        self.right = torch.zeros((), device=self.device)

    def to_device(self, batch):
        return [part.to(self.device, non_blocking=True) for part in batch]

    def step(self, clips, labels):
        scores = self.net(clips)
        loss = F.cross_entropy(scores.float(), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.right += (scores.argmax(-1) == labels).sum()

    def fit(self):
        for number, batch in enumerate(loader(self.config), 1):
            self.step(*self.to_device(batch))
            if number % 500 == 0:
                print(f"{number}: {self.right.item() / (500 * self.config.batch_size):.1%} right")
                self.right.zero_()
            if number == self.config.steps:
                break
