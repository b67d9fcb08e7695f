# Phase picker for three-component seismograms: a transformer over short pieces of the trace says, for each
# piece, how likely a P, S, Pn, Sn ... onset is. Analysts' picks are lists of different lengths.
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler


@dataclass
class Settings:
    steps: int = 600
    batch: int = 48
    samples: int = 8192
    piece: int = 16
    phases: int = 8
    events: int = 128
    bank: int = 1024
    width: int = 1024
    depth: int = 4
    heads: int = 16
    workers: int = 4
    seed: int = 5
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))


class Traces(Dataset):
    def __init__(self, s):
        rng = np.random.default_rng(s.seed)
        self.waves = rng.standard_normal((s.bank, 3, s.samples), dtype=np.float32)
        self.picks = []
        for row in range(s.bank):
            picks = []
            for at in rng.integers(64, s.samples - 64, rng.integers(s.events // 2, s.events)):
                phase, size = int(rng.integers(s.phases)), float(rng.gamma(2.0, 1.0))
                self.waves[row, :, at : at + 48] += size * np.sin(np.arange(48) * (0.2 + 0.1 * phase))
                picks.append((int(at), phase, size))
            self.picks.append(np.array(picks))

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, row):
        return self.waves[row], self.picks[row]


def collate(items):
    waves = torch.from_numpy(np.stack([wave for wave, _ in items]))
    return {"waves": waves, "picks": [picks for _, picks in items]}


class Picker(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.piece = s.piece
        self.embed = nn.Linear(3 * s.piece, s.width)
        self.place = nn.Parameter(torch.randn(s.samples // s.piece, s.width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            s.width, s.heads, 4 * s.width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, s.depth, norm=nn.LayerNorm(s.width), enable_nested_tensor=False)
        self.head = nn.Linear(s.width, s.phases)

    def forward(self, waves):
        b, c, n = waves.shape
        pieces = waves.view(b, c, n // self.piece, self.piece).transpose(1, 2).reshape(b, -1, c * self.piece)
        return self.head(self.encoder(self.embed(pieces) + self.place))


class Targets:
    """Paints each pick as a small bump over the pieces near it; weak picks get narrow bumps."""

    def __init__(self, s):
        self.s = s
        self.count = s.samples // s.piece
        self.bumps = [np.exp(-0.5 * (np.arange(-4, 5) / w) ** 2).astype(np.float32) for w in (0.8, 1.2, 1.8)]

    def paint(self, picks):
        canvas = np.zeros((len(picks), self.s.phases, self.count + 8), dtype=np.float32)
        for row, found in enumerate(picks):
            for at, phase, size in found.tolist():
                left, phase = int(at) // self.s.piece, int(phase)
                bump = self.bumps[0 if size < 1 else 1 if size < 3 else 2]
                target = canvas[row, phase, left : left + 9]
                np.maximum(target, bump, out=target)
        painted = torch.from_numpy(canvas[:, :, 4:-4]).transpose(1, 2)
        return painted.contiguous().pin_memory() if torch.cuda.is_available() else painted.contiguous()


class Feed:
    """Iterates over a loader and hands out batches that are on the device."""

    def __init__(self, loader, targets, device):
        self.loader, self.targets, self.device = loader, targets, device

    def move(self, tensor, **how):
        return tensor.to(self.device, **how)

    def __iter__(self):
        for batch in self.loader:
            waves = self.move(batch["waves"], non_blocking=True)
            wanted = self.move(self.targets.paint(batch["picks"]), non_blocking=True)
            yield waves, wanted


def train(s):
    torch.manual_seed(s.seed)
    data = Traces(s)
    order = torch.Generator().manual_seed(s.seed)
    loader = DataLoader(
        data,
        batch_size=s.batch,
        sampler=RandomSampler(data, replacement=True, num_samples=s.steps * s.batch, generator=order),
        collate_fn=collate,
        num_workers=s.workers,
        pin_memory=torch.cuda.is_available(),
    )
    model = Picker(s).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05, fused=True)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(8.0, device=s.device))
    for step, (waves, wanted) in enumerate(Feed(loader, Targets(s), s.device), start=1):
        with torch.autocast(s.device.type, dtype=torch.bfloat16):
            loss = criterion(model(waves), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print("step", step, "loss", round(loss.item(), 4))


if __name__ == "__main__":
    train(Settings())
