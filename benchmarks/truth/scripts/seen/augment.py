"""Images made with numpy, then a small convolutional network; the loss is read each step."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)


def distort(images):
    noisy = images + rng.normal(scale=0.1, size=images.shape)
    flipped = np.where(rng.random((len(images), 1, 1, 1)) < 0.5, noisy[..., ::-1], noisy)
    low, high = np.percentile(flipped, [1, 99])
    clipped = np.clip(flipped, low, high)
    return np.ascontiguousarray(clipped, dtype=np.float32)


def histogram(images):
    rows = images.reshape(len(images), -1)
    return [np.histogram(row, bins=32)[0] for row in rows]


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 24, 3),
            nn.Flatten(),
            nn.LazyLinear(5),
        )
        self.images = rng.random((32, 3, 32, 32))
        self.targets = torch.randint(0, 5, (32,))
        self.net(torch.zeros(1, 3, 32, 32))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.history = []

    def train_step(self):
        images = distort(self.images)
        bins = histogram(images)
        loss = nn.functional.cross_entropy(self.net(torch.from_numpy(images)), self.targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.history.append(loss.item())
        return bins


trainer = Trainer()
for _ in range(10**6):
    trainer.train_step()
