"""Tumour segmentation in multi-channel MR volumes: trainer with a loader and mixed precision."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
CASES, CROP, BATCH, WIDTH, STEPS = (10, 96, 4, 32, 150) if CUDA else (2, 16, 2, 4, 3)


class Crops(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(5)
        side = CROP + 32
        self.volumes = rng.integers(-128, 127, (CASES, 4, side, side, side), dtype=np.int8)
        self.labels = rng.integers(0, 4, (CASES, side, side, side), dtype=np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        case = i % CASES
        z, y, x = torch.randint(0, 33, (3,)).tolist()
        box = (slice(z, z + CROP), slice(y, y + CROP), slice(x, x + CROP))
        volume = np.ascontiguousarray(self.volumes[(case, slice(None), *box)])
        return torch.from_numpy(volume), torch.from_numpy(self.labels[(case, *box)].copy())


class Unit(nn.Sequential):
    def __init__(self, cin, cout, stride=1):
        super().__init__(nn.Conv3d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm3d(cout), nn.ReLU(inplace=True))


class SegNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a = Unit(4, w, 2)
        self.b = nn.Sequential(Unit(w, 2 * w, 2), Unit(2 * w, 2 * w))
        self.c = nn.Sequential(Unit(2 * w, 4 * w, 2), Unit(4 * w, 4 * w), Unit(4 * w, 4 * w))
        self.up_b = nn.ConvTranspose3d(4 * w, 2 * w, 2, 2)
        self.up_a = nn.ConvTranspose3d(4 * w, w, 2, 2)
        self.merge = Unit(2 * w, w)
        self.out = nn.ConvTranspose3d(w, 4, 2, 2)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        b = torch.cat([b, self.up_b(self.c(b))], 1)
        return self.out(self.merge(torch.cat([a, self.up_a(b)], 1)))


class Trainer:
    def __init__(self):
        self.net = SegNet(WIDTH).to(DEVICE, memory_format=torch.channels_last_3d)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3, fused=True)
        self.loss = torch.zeros((), device=DEVICE)

    def step(self, volume, label):
        volume = volume.to(DEVICE, non_blocking=True)
        label = label.to(DEVICE, non_blocking=True).long()
        volume = volume.to(torch.bfloat16, memory_format=torch.channels_last_3d).mul_(1 / 64)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(self.net(volume), label)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.loss.lerp_(loss.detach(), 0.05)

    def fit(self, loader):
        for i, batch in enumerate(loader):
            self.step(*batch)
            if i % 50 == 49:
                print(f"step {i + 1} loss {self.loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    workers = 12 if CUDA else 0
    trainer = Trainer()
    trainer.fit(DataLoader(Crops(STEPS * BATCH), BATCH, num_workers=workers, pin_memory=CUDA, persistent_workers=workers > 0))
