"""Keyword spotting on synthetic one-second clips: log-mel features in the workers, a conv-transformer on the device."""
import os
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

TINY = os.environ.get("TINY") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"


@dataclass
class Settings:
    clips: int = 256 if TINY else 12288
    batch: int = 32 if TINY else 512
    epochs: int = 2 if TINY else 12
    width: int = 64 if TINY else 512
    depth: int = 2 if TINY else 6
    heads: int = 8
    classes: int = 32
    workers: int = 1 if TINY else 5
    lr: float = 3e-4
    seed: int = 7
    mels: int = field(default=64)
    frames: int = field(default=128)


class EpochShuffle(Sampler):
    def __init__(self, n, seed):
        self.n, self.seed, self.epoch = n, seed, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        yield from torch.randperm(self.n, generator=g).tolist()


class Clips(Dataset):
    """Spectrogram clips kept as uint8; room noise profiles are prepared once in every worker."""

    def __init__(self, s: Settings):
        rng = np.random.default_rng(s.seed)
        self.labels = torch.from_numpy(rng.integers(0, s.classes, s.clips))
        base = rng.integers(0, 255, (s.classes, s.mels, s.frames), dtype=np.uint8)
        self.spec = torch.from_numpy(base)[self.labels]
        self.rooms = None

    def prepare(self):
        n = 64 if TINY else 1024
        t = np.linspace(0, 1, n)
        cov = np.exp(-np.abs(t[:, None] - t[None, :]) * 9.0)
        chol = np.linalg.cholesky(cov + 1e-6 * np.eye(n)).astype(np.float32)
        self.rooms = torch.from_numpy(np.resize(chol[-1] * 255, (1, self.spec.shape[-1])).astype(np.uint8))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.maximum(self.spec[i], self.rooms), self.labels[i]


def wake(worker_id):
    torch.set_num_threads(1)
    torch.utils.data.get_worker_info().dataset.prepare()


class Feed:
    def __init__(self, s: Settings):
        self.s = s
        self.data = Clips(s)
        self.order = EpochShuffle(len(self.data), s.seed)

    def _open(self):
        return DataLoader(self.data, batch_size=self.s.batch, sampler=self.order, drop_last=True,  # flaw: loader-workers-restart
                          num_workers=self.s.workers, pin_memory=ON_GPU, prefetch_factor=4,
                          worker_init_fn=wake)

    def epoch(self, number):
        self.order.epoch = number
        for spec, label in self._open():  # flaw: loader-workers-restart
            yield spec.to(DEVICE, non_blocking=True), label.to(DEVICE, non_blocking=True)


class Spotter(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.stem = nn.Linear(s.mels * 2, s.width)
        layer = lambda: nn.TransformerEncoderLayer(s.width, s.heads, 4 * s.width, dropout=0.0, activation="gelu",
                                                   batch_first=True, norm_first=True)
        self.layers = nn.ModuleList(layer() for _ in range(s.depth))
        self.head = nn.Linear(s.width, s.classes)

    def forward(self, spec):
        b, m, t = spec.shape
        x = (spec.float() / 127.5 - 1).transpose(1, 2).reshape(b, t // 2, 2 * m)
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def main():
    s = Settings()
    torch.manual_seed(s.seed)
    torch.set_float32_matmul_precision("high")
    feed = Feed(s)
    net = Spotter(s).to(DEVICE)
    forward = net if TINY else torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=s.lr, fused=ON_GPU)
    for e in range(s.epochs):
        running = torch.zeros((), device=DEVICE)
        for spec, label in feed.epoch(e):
            with torch.autocast("cuda", torch.bfloat16, enabled=ON_GPU):
                loss = F.cross_entropy(forward(spec), label)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            running += loss.detach()
        print(f"epoch {e} loss {running.item() / (s.clips // s.batch):.5f}", flush=True)


if __name__ == "__main__":
    main()
