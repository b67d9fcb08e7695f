"""Frame interpolation: a network predicts the middle frame of three, clips come from worker processes."""

import itertools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

GPU = torch.cuda.is_available()
CROP = 256 if GPU else 32
BATCH = 16 if GPU else 2
STEPS = 120 if GPU else 3


class Triplets(IterableDataset):
    """Endless random triplets of frames, cut from videos in memory (uint8)."""

    def __init__(self, videos=6, frames=24, side=CROP + 64):
        rng = np.random.default_rng(0)
        self.videos = rng.integers(0, 256, (videos, frames, 3, side, side), dtype=np.uint8)

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        rng = np.random.default_rng(info.seed if info else 0)
        videos, frames, _, side, _ = self.videos.shape
        while True:
            v, f = rng.integers(videos), rng.integers(frames - 2)
            y, x = rng.integers(0, side - CROP + 1, 2)
            triplet = self.videos[v, f : f + 3, :, y : y + CROP, x : x + CROP]
            if rng.random() < 0.5:
                triplet = triplet[::-1]
            yield torch.from_numpy(np.ascontiguousarray(triplet))


class Refine(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.b(F.relu(self.a(x), inplace=True))


class Interpolator(nn.Module):
    """Works on pixel-unshuffled frames, predicts a residual on their mean."""

    def __init__(self, width, depth, shuffle=4):
        super().__init__()
        self.shuffle = shuffle
        channels = 3 * shuffle**2
        self.inp = nn.Conv2d(2 * channels, width, 3, padding=1)
        self.body = nn.Sequential(*[Refine(width) for _ in range(depth)])
        self.out = nn.Conv2d(width, channels, 3, padding=1)

    def forward(self, before, after):
        x = F.pixel_unshuffle(torch.cat([before, after], dim=1), self.shuffle)
        y = self.out(self.body(self.inp(x.contiguous(memory_format=torch.channels_last))))
        return torch.lerp(before, after, 0.5) + F.pixel_shuffle(y, self.shuffle)


def prepare(batch, device):
    frames = batch.to(device, non_blocking=True).to(torch.bfloat16).div_(255)
    return frames.unbind(1)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if GPU else "cpu")
    loader = DataLoader(
        Triplets(), batch_size=BATCH, num_workers=8 if GPU else 1, pin_memory=GPU, prefetch_factor=4, drop_last=True
    )
    model = Interpolator(256 if GPU else 16, 12 if GPU else 2).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for step, batch in enumerate(itertools.islice(loader, STEPS)):
        before, middle, after = prepare(batch, device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            predicted = model(before, after)
            loss = F.l1_loss(predicted, middle)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: l1 {loss.item():.4f}")


if __name__ == "__main__":
    main()
