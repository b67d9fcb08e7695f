"""Acoustic model on log-mel frames (synthetic), stacked frames and a residual network."""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

QUICK = os.environ.get("SMALL") is not None
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

SETTINGS = {
    "frames": 64 if QUICK else 1600,
    "mels": 80,
    "width": 32 if QUICK else 384,
    "depth": 1 if QUICK else 8,
    "steps": 30 if QUICK else 120,
    "loader": {
        "batch_size": 4 if QUICK else 64,
        "num_workers": 1 if QUICK else 6,
        "prefetch_factor": 2,
        "pin_memory": False,  # flaw: pageable-host-copy
        "drop_last": True,
    },
}


class Utterances(Dataset):
    def __init__(self, n, frames, mels):
        self.n, self.frames = n, frames
        self.tape = np.random.default_rng(0).standard_normal((frames * 20, mels), dtype=np.float32)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        start = (i * 7919) % (len(self.tape) - self.frames)
        return torch.from_numpy(self.tape[start : start + self.frames]), i % 35


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Spotter(nn.Module):
    def __init__(self, mels, width, depth):
        super().__init__()
        self.front = nn.Linear(mels * 4, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 35)

    def forward(self, x):
        x = self.front(x.reshape(x.shape[0], x.shape[1] // 4, -1))
        return self.head(self.blocks(x).mean(1))


def train(model, loader, steps):
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    running = torch.zeros((), device=device)
    for n, (feats, label) in enumerate(loader, 1):
        feats = feats.to(device, non_blocking=True)
        label = label.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(feats), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.detach()
        if n % 40 == 0:
            print(f"{n}/{steps} loss {running.item() / n:.4f}")


torch.manual_seed(1)
corpus = Utterances(SETTINGS["steps"] * SETTINGS["loader"]["batch_size"], SETTINGS["frames"], SETTINGS["mels"])
train(
    Spotter(SETTINGS["mels"], SETTINGS["width"], SETTINGS["depth"]).to(device),
    DataLoader(corpus, **SETTINGS["loader"]),
    SETTINGS["steps"],
)
