# Predicts aroma intensities of cheese wheels from mass-spectrometer peaks and storage data.
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

WHEELS, PEAKS, ROOM, AROMAS = 16384, 64, 8, 16


def laboratory(seed):
    rng = np.random.default_rng(seed)
    peaks = rng.gamma(2.0, 1.0, (WHEELS, PEAKS)).astype(np.float32)
    room = rng.standard_normal((WHEELS, ROOM)).astype(np.float32)
    mix = rng.standard_normal((PEAKS + ROOM, AROMAS)).astype(np.float32) / 8
    aroma = np.tanh(np.hstack([peaks - 2, room]) @ mix) + 0.1 * rng.standard_normal((WHEELS, AROMAS)).astype(np.float32)
    trust = rng.uniform(0.5, 1.0, (WHEELS, 1)).astype(np.float32)
    return map(torch.from_numpy, (peaks, room, aroma.astype(np.float32), trust))


def wheels_loader(seed, rows):
    table = TensorDataset(*laboratory(seed))
    picks = BatchSampler(RandomSampler(table), rows, drop_last=True)
    return DataLoader(table, batch_size=None, sampler=picks)


class Taster(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.nose = nn.Linear(PEAKS, width)
        self.cellar = nn.Linear(ROOM, width)
        self.think = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, AROMAS))

    def forward(self, peaks, room):
        return self.think(self.nose(peaks) + self.cellar(room))


def endless(loader):
    while True:
        yield from loader


def fit(net, loader, steps, report):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    error = torch.zeros(())
    for step, (peaks, room, aroma, trust) in enumerate(endless(loader), 1):
        loss = F.mse_loss(net(peaks, room), aroma, weight=trust.expand_as(aroma))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        error += loss.detach()
        if step % report == 0:
            print(f"{step:6d} {error.item() / report:.5f}", flush=True)
            error.zero_()
        if step == steps:
            break


if __name__ == "__main__":
    torch.manual_seed(17)
    fit(Taster(), wheels_loader(seed=18, rows=768), steps=2400, report=240)
