"""Metric learning on product photographs: batch-hard triplets, P classes x K pictures."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
P, K = (64, 4) if CUDA else (4, 2)
PRODUCTS, PICTURES, SIDE = (12000, 60000, 96) if CUDA else (20, 100, 24)
STORED = 4096 if CUDA else 32
WIDTH, STEPS = (64, 300) if CUDA else (8, 3)


class ClassBalancedSampler:
    """Draws rare products more often, then K pictures of each."""

    def __init__(self, labels, seed=0):
        self.rng = np.random.default_rng(seed)
        order = np.argsort(labels, kind="stable")
        starts = np.searchsorted(labels[order], np.arange(PRODUCTS))
        self.by_class = np.split(order, starts[1:])
        counts = np.array([len(c) for c in self.by_class])
        self.usable = np.flatnonzero(counts >= K)
        weight = counts[self.usable] ** -0.5
        self.probability = weight / weight.sum()

    def draw(self):
        chosen = self.rng.choice(self.usable, P, replace=False, p=self.probability)
        return np.concatenate([self.rng.choice(self.by_class[c], K, replace=False) for c in chosen])


def conv(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class Embedder(nn.Sequential):
    def __init__(self, w):
        super().__init__(
            conv(3, w, 2),
            conv(w, w),
            conv(w, 2 * w, 2),
            conv(2 * w, 2 * w),
            conv(2 * w, 4 * w, 2),
            conv(4 * w, 4 * w),
            conv(4 * w, 4 * w),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4 * w, 128),
        )


def batch_hard(z, labels, margin=0.2):
    similarity = z @ z.T
    same = labels[:, None] == labels[None]
    worst = similarity.masked_fill(~same, 2.0).amin(1)
    closest = similarity.masked_fill(same, -2.0).amax(1)
    gap = F.relu(closest - worst + margin)
    return gap.mean(), (gap > 0).float().mean()


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    rng = np.random.default_rng(1)
    labels_host = rng.integers(0, PRODUCTS, PICTURES)
    labels = torch.from_numpy(labels_host).to(DEVICE)
    pictures = torch.randint(0, 256, (STORED, 3, SIDE, SIDE), dtype=torch.uint8, device=DEVICE)
    sampler = ClassBalancedSampler(labels_host)
    model = Embedder(WIDTH).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=CUDA)
    mean_loss, mean_active = torch.zeros(2, device=DEVICE)
    for step in range(1, STEPS + 1):
        rows = torch.from_numpy(sampler.draw())
        if CUDA:
            rows = rows.pin_memory()
        rows = rows.to(DEVICE, non_blocking=True)
        x = pictures[rows % STORED].float().div_(255)
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            z = model(x)
        loss, active = batch_hard(F.normalize(z.float()), labels[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        mean_loss.lerp_(loss.detach(), 0.05)
        mean_active.lerp_(active, 0.05)
        if step % 100 == 0:
            print(f"step {step}: loss {mean_loss:.4f}, active triplets {mean_active:.3f}")


if __name__ == "__main__":
    main()
