"""Tagging of short clips; features are computed on the fly."""
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    clips: int = 8192
    batch_size: int = 128
    frames: int = 128
    mels: int = 128
    width: int = 512
    tags: int = 80
    lr: float = 1e-3


class Clips(Dataset):
    def __init__(self, cfg):
        self.cfg = cfg
        self.base = np.random.default_rng(1).standard_normal((64, 160 * cfg.frames + 400), dtype=np.float32)
        self.window = np.hanning(400).astype(np.float32)
        self.bank = np.random.default_rng(2).random((201, cfg.mels), dtype=np.float32)

    def __len__(self):
        return self.cfg.clips

    def __getitem__(self, i):
        wave = self.base[i % 64] * (0.5 + (i % 7) / 7)
        wave = wave + 0.01 * np.roll(wave, i % 400)
        frames = np.lib.stride_tricks.sliding_window_view(wave, 400)[::160][: self.cfg.frames]
        power = np.abs(np.fft.rfft(frames * self.window, axis=-1)).astype(np.float32)
        mel = np.log1p(power @ self.bank)
        return torch.from_numpy(mel), i % self.cfg.tags


class Tagger(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Linear(cfg.mels, cfg.width)
        layer = nn.TransformerEncoderLayer(cfg.width, 8, 4 * cfg.width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.out = nn.Linear(cfg.width, cfg.tags)

    def forward(self, x):
        return self.out(self.enc(self.inp(x)).mean(1))


def main(cfg=Config()):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(Clips(cfg), cfg.batch_size, shuffle=True, pin_memory=device == "cuda", drop_last=True)  # flaw: loader-without-workers
    model = Tagger(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    total = len(loader) * 6
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.5 * (1 + math.cos(math.pi * min(s / total, 1))))
    for epoch in range(6):
        for mel, tag in loader:
            mel, tag = mel.to(device, non_blocking=True), tag.to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(mel), tag)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
