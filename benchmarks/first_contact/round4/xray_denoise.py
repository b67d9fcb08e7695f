#!/usr/bin/env python
"""Residual denoiser for radiographs. The target is a median-filtered exposure."""
import os

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import nn
from torch.utils.data import DataLoader, Dataset

CFG = dict(side=96, batch=48, width=64, depth=12, steps=70, workers=12)
if os.getenv("SMALL"):
    CFG.update(side=16, batch=4, width=8, depth=3, steps=30, workers=1)


class Radiographs(Dataset):
    def __init__(self, n, side):
        self.n, self.side = n, side
        self.raw = np.random.default_rng(1).normal(0.5, 0.15, (64, side + 64, side + 64)).astype(np.float32)

    def __len__(self):
        return self.n

    def __getitem__(self, k):
        rng = np.random.default_rng(k)
        oy, ox = rng.integers(0, 60, 2)
        patch = self.raw[k % 64, oy:oy + self.side + 4, ox:ox + self.side + 4]
        target = np.median(sliding_window_view(patch, (5, 5)), axis=(2, 3))  # flaw: slow-sample-line
        noisy = patch[2:-2, 2:-2] + 0.05 * rng.standard_normal((self.side, self.side), dtype=np.float32)
        return noisy[None], target[None].astype(np.float32)


class DnCNN(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        body = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU(inplace=True)]
        for _ in range(depth):
            body.append(nn.Conv2d(width, width, 3, padding=1, bias=False))
            body.append(nn.BatchNorm2d(width))
            body.append(nn.ReLU(inplace=True))
        body.append(nn.Conv2d(width, 1, 3, padding=1))
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x - self.body(x)


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.cuda = torch.cuda.is_available()
        self.device = "cuda" if self.cuda else "cpu"
        self.model = DnCNN(cfg["width"], cfg["depth"]).to(self.device, memory_format=torch.channels_last)
        self.opt = torch.optim.Adam(self.model.parameters(), 1e-3, fused=self.cuda)

    def batches(self):
        c = self.cfg
        loader = DataLoader(Radiographs(c["steps"] * c["batch"], c["side"]), c["batch"], num_workers=c["workers"],
                            pin_memory=self.cuda, persistent_workers=True, prefetch_factor=4)
        for noisy, target in loader:
            yield noisy.to(self.device, non_blocking=True), target.to(self.device, non_blocking=True)

    def fit(self):
        for n, (noisy, target) in enumerate(self.batches()):
            with torch.autocast(self.device, torch.bfloat16):
                out = self.model(noisy)
            loss = nn.functional.mse_loss(out.float(), target)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if n % 20 == 19:
                print(n + 1, f"{loss.item():.5f}")


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    Runner(CFG).fit()
