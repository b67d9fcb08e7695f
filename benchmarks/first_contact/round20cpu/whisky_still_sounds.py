"""Which still is running? Contact-microphone clips of a distillery (baseline script of a challenge)."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Hparams:
    stills = 8
    clips_per_still = 60
    native_rate = 11_025
    rate = 8_000
    seconds = 3.0
    crop = 4_096
    batch_size = 32
    epochs = 36
    lr = 1e-3
    seed = 99


hp = Hparams()


def record(still, rng):
    """A clip at the microphone's own rate."""
    t = np.arange(int(hp.seconds * hp.native_rate)) / hp.native_rate
    base = 70 + 23 * still + rng.normal(0, 2)
    clip = sum(np.sin(2 * np.pi * base * k * t + rng.uniform(0, 6)) / k for k in (1, 2, 3))
    return (clip + rng.normal(0, 0.6, t.size)).astype(np.float32)


def resample(clip, old, new):
    at = np.arange(int(len(clip) * new / old)) * (old / new)
    return np.interp(at, np.arange(len(clip)), clip).astype(np.float32)


class StillClips(Dataset):
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.labels = np.repeat(np.arange(hp.stills), hp.clips_per_still)
        self.clips = [record(still, rng) for still in self.labels]
        self.rng = np.random.default_rng(seed + 1)

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        clip = resample(self.clips[i], hp.native_rate, hp.rate)  # flaw: slow-sample-line|loader-without-workers
        start = self.rng.integers(0, len(clip) - hp.crop)
        gain = self.rng.uniform(0.5, 1.5)
        return torch.from_numpy(clip[start:start + hp.crop] * np.float32(gain)), int(self.labels[i])


class AudioNet(nn.Module):
    """Strided 1-D convolutions on the waveform, in the manner of M5."""

    def __init__(self, classes, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 64, stride=16, bias=False), nn.BatchNorm1d(width), nn.ReLU(inplace=True),
            nn.Conv1d(width, 2 * width, 3, stride=2, bias=False), nn.BatchNorm1d(2 * width), nn.ReLU(inplace=True),
            nn.Conv1d(2 * width, 2 * width, 3, bias=False), nn.BatchNorm1d(2 * width), nn.ReLU(inplace=True),
        )
        self.fc = nn.Linear(2 * width, classes)

    def forward(self, wave):
        return self.fc(self.body(wave.unsqueeze(1)).mean(-1))


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean().item() * 100


def train_epoch(epoch, model, loader, criterion, optimizer):
    model.train()
    losses, accs = [], []
    for wave, still in loader:
        output = model(wave)
        loss = criterion(output, still)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        accs.append(accuracy(output, still))
    print("Epoch {:2d}\tloss {:.4f}\tacc@1 {:5.1f}".format(epoch, np.mean(losses), np.mean(accs)))


torch.manual_seed(hp.seed)
dataset = StillClips(hp.seed)
loader = DataLoader(dataset, batch_size=hp.batch_size, shuffle=True, drop_last=True)
model = AudioNet(hp.stills)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=hp.lr, fused=True)
for epoch in range(hp.epochs):
    train_epoch(epoch, model, loader, criterion, optimizer)
