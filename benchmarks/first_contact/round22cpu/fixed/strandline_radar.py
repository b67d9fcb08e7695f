"""Nowcasting of shoreline run-up from coastal X-band radar sweeps that are kept in an object store.

The archive is mocked: every sweep is a zlib blob whose fetch has the latency of the real bucket.
"""
import time
import zlib
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class BucketConfig:
    sweeps: int = 12000
    rays: int = 48
    gates: int = 64
    round_trip: float = 0.004


@dataclass
class FeedConfig:
    rows: int = 16
    readers: int = 4
    ahead: int = 3


@dataclass
class RunConfig:
    bucket: BucketConfig = field(default_factory=BucketConfig)
    feed: FeedConfig = field(default_factory=FeedConfig)
    width: int = 24
    lr: float = 2e-3
    updates: int = 420
    report: int = 40
    seed: int = 11


class Bucket:
    """A client of the store: keys are numbers, values are compressed sweeps."""

    def __init__(self, cfg: BucketConfig, seed: int):
        self.cfg = cfg
        rng = np.random.default_rng(seed)
        self.phase = rng.uniform(0, 2 * np.pi, cfg.sweeps).astype(np.float32)
        self.period = rng.uniform(6, 15, cfg.sweeps).astype(np.float32)
        gate = np.arange(cfg.gates, dtype=np.float32)
        self.blobs = []
        for k in range(64):
            sea = np.sin(gate[None] / (2 + k % 7) + np.arange(cfg.rays)[:, None] / 9)
            noise = rng.normal(0, 0.2, (cfg.rays, cfg.gates))
            self.blobs.append(zlib.compress((sea + noise).astype(np.float16).tobytes(), 1))

    def get(self, key: int) -> bytes:
        time.sleep(self.cfg.round_trip)
        return self.blobs[key % len(self.blobs)]


class Sweeps(Dataset):
    def __init__(self, bucket: Bucket):
        self.bucket = bucket

    def __len__(self):
        return self.bucket.cfg.sweeps

    def __getitem__(self, key):
        cfg = self.bucket.cfg
        echo = np.frombuffer(zlib.decompress(self.bucket.get(key)), np.float16)
        echo = echo.reshape(1, cfg.rays, cfg.gates).astype(np.float32) * np.cos(self.bucket.phase[key])
        runup = 0.1 * self.bucket.period[key] * np.cos(self.bucket.phase[key])
        return torch.from_numpy(echo), np.float32(runup)


class RadarFeed:
    def __init__(self, cfg: RunConfig, cuda: bool):
        self.cfg, self.cuda = cfg, cuda

    def loader(self) -> DataLoader:
        feed = self.cfg.feed
        return DataLoader(
            Sweeps(Bucket(self.cfg.bucket, self.cfg.seed)),
            batch_size=feed.rows,
            shuffle=True,
            drop_last=True,
            num_workers=feed.readers,
            prefetch_factor=feed.ahead,
            persistent_workers=True,
            pin_memory=self.cuda,
            generator=torch.Generator().manual_seed(self.cfg.seed),
        )


class RunupNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.GELU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.GELU(),
        )
        self.head = nn.Linear(2 * width, 1)

    def forward(self, echo):
        return self.head(self.trunk(echo).mean((2, 3))).squeeze(1)


class Nowcaster:
    def __init__(self, cfg: RunConfig):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = RunupNet(cfg.width).to(self.device)
        self.optim = torch.optim.AdamW(self.net.parameters(), lr=cfg.lr, fused=True)
        self.feed = RadarFeed(cfg, self.device.type == "cuda")

    def update(self, echo, runup):
        echo = echo.to(self.device, non_blocking=True)
        runup = runup.to(self.device, non_blocking=True)
        loss = nn.functional.smooth_l1_loss(self.net(echo), runup)
        self.optim.zero_grad(set_to_none=True)
        loss.backward()
        self.optim.step()
        return loss.detach()

    def fit(self):
        begun, total = time.perf_counter(), torch.zeros((), device=self.device)
        for number, (echo, runup) in enumerate(self.feed.loader(), 1):
            total += self.update(echo, runup)
            if number % self.cfg.report == 0:
                pace = (time.perf_counter() - begun) / self.cfg.report * 1e3
                print(f"update {number:4d}  loss {total.item() / self.cfg.report:.5f}  {pace:.1f} ms", flush=True)
                total.zero_()
                begun = time.perf_counter()
            if number == self.cfg.updates:
                break


if __name__ == "__main__":
    Nowcaster(RunConfig()).fit()
