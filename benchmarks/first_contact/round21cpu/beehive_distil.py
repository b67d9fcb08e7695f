"""Distils a large beehive-sound model into one that fits on a hive's own board."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

STATES = 16  # queenless, swarming, ...
LENGTH = 1024


class HiveClips(Dataset):
    """Clips with added wind and a random gain. A key is (epoch, number), so each epoch differs."""

    def __init__(self, count, seed):
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.hums = rng.uniform(20, 400, (count, 3)).astype(np.float32)
        self.time = np.arange(LENGTH, dtype=np.float32) / LENGTH
        self.window = np.hanning(LENGTH).astype(np.float32)

    def __getitem__(self, key):
        epoch, number = key
        rng = np.random.default_rng((self.seed, epoch, number))
        tones = np.sin(2 * np.pi * self.hums[number, :, None] * self.time)
        clip = rng.uniform(0.5, 1.5) * tones.sum(0) + 0.5 * rng.standard_normal(LENGTH, dtype=np.float32)
        spectrum = np.abs(np.fft.rfft(clip * self.window))[1:]
        return torch.from_numpy(np.log1p(spectrum).astype(np.float32))

    def __len__(self):
        return len(self.hums)


class KeyedSampler(Sampler):
    def __init__(self, count, seed):
        self.count, self.seed, self.epoch = count, seed, 0

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        self.epoch += 1
        for number in torch.randperm(self.count, generator=g).tolist():
            yield self.epoch, number

    def __len__(self):
        return self.count


def listener(width, depth):
    layers, size = [], LENGTH // 2
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.LayerNorm(width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, STATES))


class DistilModule(nn.Module):
    def __init__(self, clips, batch, softness, lr):
        super().__init__()
        self.clips, self.batch, self.softness, self.lr = clips, batch, softness, lr
        self.teacher = listener(1024, 4).eval().requires_grad_(False)
        self.student = listener(384, 2)
        self.sampler = KeyedSampler(len(clips), seed=70)

    def train_dataloader(self):
        return DataLoader(self.clips, self.batch, sampler=self.sampler, num_workers=1, drop_last=True)  # flaw: loader-workers-restart

    def configure_optimizer(self):
        return torch.optim.AdamW(self.student.parameters(), lr=self.lr, fused=True)

    def training_step(self, spectra):
        with torch.no_grad():
            wanted = F.log_softmax(self.teacher(spectra) / self.softness, dim=1)
        given = F.log_softmax(self.student(spectra) / self.softness, dim=1)
        return F.kl_div(given, wanted, reduction="batchmean", log_target=True) * self.softness**2


class Fitter:
    def __init__(self, epochs, print_each):
        self.epochs, self.print_each = epochs, print_each

    def fit(self, module):
        optimizer = module.configure_optimizer()
        for epoch in range(1, self.epochs + 1):
            mean = self.epoch(module, module.train_dataloader(), optimizer)  # flaw: loader-workers-restart
            if epoch % self.print_each == 0:
                print(f"epoch {epoch:3d}  divergence {mean.item():.5f}", flush=True)

    def epoch(self, module, loader, optimizer):
        total = torch.zeros(())
        for spectra in loader:
            loss = module.training_step(spectra)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total / len(loader)


if __name__ == "__main__":
    torch.manual_seed(71)
    torch.set_num_threads(1)
    clips = HiveClips(count=512, seed=72)
    Fitter(epochs=80, print_each=8).fit(DistilModule(clips, batch=64, softness=3.0, lr=1e-3))
