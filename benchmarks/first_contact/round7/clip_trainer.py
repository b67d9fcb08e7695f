"""Action recognition on short clips, (2+1)D convolutions, class-balanced loss."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
BATCH, SIZE, WIDTH, STEPS = (24, 112, 64, 160) if CUDA else (2, 32, 8, 4)
CLASSES = 174
torch.backends.cudnn.benchmark = True


class Clips(Dataset):
    def __init__(self, videos=96, frames=32):
        self.videos = np.random.randint(0, 255, (videos, frames, 3, SIZE, SIZE), dtype=np.uint8)

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        video = self.videos[index % len(self.videos)]
        start = random.randrange(video.shape[0] - 16)
        clip = np.ascontiguousarray(video[start : start + 16].transpose(1, 0, 2, 3))
        return torch.from_numpy(clip), index % CLASSES


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.space = nn.Conv3d(cin, cout, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False)
        self.norm1 = nn.BatchNorm3d(cout)
        self.time = nn.Conv3d(cout, cout, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False)
        self.norm2 = nn.BatchNorm3d(cout)

    def forward(self, x):
        x = F.relu(self.norm1(self.space(x)), inplace=True)
        return F.relu(self.norm2(self.time(x)), inplace=True)


class ClassBalance:
    """Weights by effective number of samples, over the last labels seen."""

    def __init__(self, window=120_000):
        self.history = np.random.randint(0, CLASSES, window)
        self.order = np.random.permutation(window)

    def update(self, labels):
        self.history = np.concatenate([self.history[len(labels) :], labels])
        recency = np.argsort(self.order, kind="stable") / len(self.order)
        counts = np.bincount(self.history, weights=0.5 + recency, minlength=CLASSES)
        weights = (1 - 0.9999) / (1 - np.power(0.9999, counts + 1))
        return torch.from_numpy((weights / weights.mean()).astype(np.float32))


class Trainer:
    def __init__(self):
        w = WIDTH
        self.model = nn.Sequential(
            Block(3, w, 2), Block(w, w), Block(w, 2 * w, 2), Block(2 * w, 2 * w), Block(2 * w, 4 * w, 2),
            nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4 * w, CLASSES),
        ).to(DEVICE, memory_format=torch.channels_last_3d)  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)
        self.balance = ClassBalance()
        self.class_weights = torch.ones(CLASSES, device=DEVICE)

    def training_step(self, clips, labels):
        seen = labels.numpy()
        clips = clips.to(DEVICE)  # flaw: blocking-host-copy
        labels = labels.to(DEVICE)  # flaw: blocking-host-copy
        weights = self.balance.update(seen)
        weights = weights.pin_memory() if CUDA else weights
        self.class_weights.copy_(weights, non_blocking=True)
        clips = clips.to(torch.bfloat16).div_(255).contiguous(memory_format=torch.channels_last_3d)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            logits = self.model(clips)
        loss = F.cross_entropy(logits.float(), labels, weight=self.class_weights)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, loader):
        for step, (clips, labels) in enumerate(loader):
            loss = self.training_step(clips, labels)
            if step % 40 == 0:
                print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    workers = 12 if CUDA else 0
    loader = DataLoader(
        Clips(), BATCH, shuffle=True, num_workers=workers, pin_memory=CUDA, persistent_workers=workers > 0, drop_last=True
    )
    Trainer().fit(loader)
