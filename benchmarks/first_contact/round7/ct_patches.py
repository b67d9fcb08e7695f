"""Organ segmentation in CT: random patches from volumes held in memory."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEV = "cuda" if CUDA else "cpu"
SHAPE = (160, 192, 192) if CUDA else (24, 24, 24)
PATCH = 96 if CUDA else 16
BATCH = 4 if CUDA else 2
ITERATIONS = 100 if CUDA else 3
ORGANS = 8


class PatchDataset(Dataset):
    def __init__(self, cases=5, length=ITERATIONS * BATCH):
        rng = np.random.default_rng(3)
        self.volumes = [rng.integers(-1000, 1500, SHAPE, dtype=np.int16) for _ in range(cases)]
        self.labels = [rng.integers(0, ORGANS, SHAPE, dtype=np.uint8) for _ in range(cases)]
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        case = index % len(self.volumes)
        volume, label = self.volumes[case], self.labels[case]
        low, high = np.percentile(volume, (0.5, 99.5))  # flaw: slow-sample-line
        corner = [int(torch.randint(0, s - PATCH + 1, ())) for s in SHAPE]
        window = tuple(slice(c, c + PATCH) for c in corner)
        patch = np.clip(volume[window], low, high).astype(np.float32)
        patch = (patch - low) / (high - low)
        return torch.from_numpy(patch.astype(np.float32))[None], torch.from_numpy(label[window].copy())


class ConvBlock(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv3d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm3d(cout),
            nn.ReLU(inplace=True),
            nn.Conv3d(cout, cout, 3, padding=1, bias=False),
            nn.BatchNorm3d(cout),
            nn.ReLU(inplace=True),
        )


class VNet(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        self.stem = nn.Conv3d(1, w, 2, 2)
        self.down = nn.ModuleList([ConvBlock(w, w), ConvBlock(w, 2 * w), ConvBlock(2 * w, 4 * w)])
        self.up = nn.ModuleList([nn.ConvTranspose3d(4 * w, 2 * w, 2, 2), nn.ConvTranspose3d(2 * w, w, 2, 2)])
        self.merge = nn.ModuleList([ConvBlock(4 * w, 2 * w), ConvBlock(2 * w, w)])
        self.head = nn.ConvTranspose3d(w, ORGANS, 2, 2)

    def forward(self, x):
        a = self.down[0](self.stem(x))
        b = self.down[1](F.max_pool3d(a, 2))
        c = self.down[2](F.max_pool3d(b, 2))
        b = self.merge[0](torch.cat((self.up[0](c), b), 1))
        a = self.merge[1](torch.cat((self.up[1](b), a), 1))
        return self.head(a)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    workers = 14 if CUDA else 0
    loader = DataLoader(PatchDataset(), BATCH, num_workers=workers, pin_memory=CUDA, persistent_workers=workers > 0)
    net = VNet(32 if CUDA else 4).to(DEV, memory_format=torch.channels_last_3d)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    running = torch.zeros((), device=DEV)
    for it, (patch, label) in enumerate(loader, 1):
        patch = patch.to(DEV, non_blocking=True, memory_format=torch.channels_last_3d)
        label = label.to(DEV, non_blocking=True).long()
        with torch.autocast(DEV, torch.bfloat16):
            loss = F.cross_entropy(net(patch), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running.lerp_(loss.detach(), 0.05)
        if it % 50 == 0:
            print(it, f"{running.item():.4f}")


if __name__ == "__main__":
    main()
