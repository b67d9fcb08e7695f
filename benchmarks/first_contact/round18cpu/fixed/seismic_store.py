"""Pick arrival times on seismograms that are fetched trace by trace from an object store (its latency is simulated)."""
import os
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"


@dataclass
class Plan:
    traces: int = 48 if TINY else 1280
    batch: int = 8 if TINY else 16
    samples: int = 600
    latency: float = 0.001 if TINY else 0.006  # seconds to the first byte of a trace
    workers: int = 6
    lr: float = 1e-3


class Store(Dataset):
    def __init__(self, plan):
        self.plan = plan

    def __len__(self):
        return self.plan.traces

    def fetch(self, key):
        time.sleep(self.plan.latency)
        rng = np.random.default_rng(key)
        onset = int(rng.integers(100, 500))
        trace = 0.1 * rng.standard_normal(self.plan.samples, dtype=np.float32)
        trace[onset:] += np.sin(0.3 * np.arange(self.plan.samples - onset, dtype=np.float32))
        return trace, np.float32(onset / self.plan.samples)

    def __getitem__(self, i):
        return self.fetch(i)


class Picker(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4), nn.GELU(),
            nn.Conv1d(width, width, 9, padding=4), nn.GELU(), nn.Conv1d(width, 1, 9, padding=4))
        self.register_buffer("axis", torch.linspace(0, 1, 600))

    def forward(self, trace):
        return (self.conv(trace.unsqueeze(1)).squeeze(1).softmax(-1) * self.axis).sum(-1)


def main(plan):
    torch.set_num_threads(1)  # the loader has the other core
    torch.manual_seed(0)
    loader = DataLoader(
        Store(plan), batch_size=plan.batch, shuffle=True, num_workers=plan.workers, generator=torch.Generator().manual_seed(4)
    )
    net = Picker()
    optimizer = torch.optim.AdamW(net.parameters(), lr=plan.lr, fused=True)
    began = time.perf_counter()
    for n, (trace, onset) in enumerate(loader, 1):
        loss = F.smooth_l1_loss(net(trace), onset)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"{(time.perf_counter() - began) / n * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"{n} batches, pick loss {loss.item():.4f}")


if __name__ == "__main__":
    main(Plan())
