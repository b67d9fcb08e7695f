"""Telling the century of a stained glass pane. A short pass over the collection is one epoch."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)  # the other core prepares panes


class Panes(Dataset):
    def __init__(self, count=168, side=64, seed=5):
        rng = np.random.default_rng(seed)
        self.century = rng.integers(0, 6, count)
        base = rng.random((6, 3, 8, 8))
        tint = base[self.century] + 0.35 * rng.standard_normal((count, 3, 8, 8))
        self.glass = np.kron(tint, np.ones((1, 1, side // 8, side // 8))).astype(np.float32)

    def __len__(self):
        return len(self.glass)

    def __getitem__(self, key):
        index, seed = key
        rng = np.random.default_rng(seed)
        pane = np.rot90(self.glass[index], rng.integers(4), (1, 2))
        spectrum = np.fft.rfft2(pane)
        rows = np.fft.fftfreq(pane.shape[1])[:, None] ** 2
        cols = np.fft.rfftfreq(pane.shape[2])[None] ** 2
        soft = np.fft.irfft2(spectrum * np.exp(-rng.uniform(2, 60) * (rows + cols)))
        soft = soft * rng.uniform(0.7, 1.3, (3, 1, 1)) + 0.05 * rng.standard_normal(soft.shape)
        return torch.from_numpy(soft.astype(np.float32)), int(self.century[index])


class Rounds:
    """Every pane once, in a new order and with a new seed each time round."""

    def __init__(self, count, size):
        self.count, self.size, self.rng = count, size, np.random.default_rng(1)

    def __len__(self):
        return self.count // self.size

    def __iter__(self):
        order = self.rng.permutation(self.count)
        seeds = self.rng.integers(0, 2**31, self.count)
        for at in range(0, len(self) * self.size, self.size):
            yield list(zip(order[at : at + self.size].tolist(), seeds[at : at + self.size].tolist()))


def stage(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)
    )


class Studio:
    def __init__(self, panes, size=12):
        self.net = nn.Sequential(
            stage(3, 24), stage(24, 48), stage(48, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 6)
        ).to(memory_format=torch.channels_last)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=2e-3, fused=True)
        self.feed = DataLoader(
            panes, batch_sampler=Rounds(len(panes), size), num_workers=1, persistent_workers=True
        )

    def stream(self):
        while True:
            yield from self.feed

    def learn(self, panes, century):
        self.opt.zero_grad()
        value = self.loss(self.net(panes.contiguous(memory_format=torch.channels_last)), century)
        value.backward()
        self.opt.step()
        return value.detach()

    def fit(self, steps):
        recent = []
        for step, (panes, century) in enumerate(self.stream(), 1):
            recent.append(self.learn(panes, century).clone())
            if step % 140 == 0:
                print(f"step {step}: loss {torch.stack(recent).mean():.4f}", flush=True)
                recent.clear()
            if step == steps:
                break


if __name__ == "__main__":
    torch.manual_seed(0)
    Studio(Panes()).fit(steps=700)
