"""Super-resolution of aerial images, x2: low-resolution inputs are simulated from the originals."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
PATCH, BATCH, STEPS = (192, 32, 140) if GPU else (32, 4, 4)
WIDTH, DEPTH = (96, 8) if GPU else (8, 2)
KERNEL = np.array([0.06, 0.24, 0.4, 0.24, 0.06], dtype=np.float32)


def smooth(image, axis):
    padded = np.pad(image, [(2, 2) if a == axis else (0, 0) for a in range(3)], mode="edge")
    n = image.shape[axis]
    shifted = [padded[i:i + n] if axis == 0 else padded[:, i:i + n] for i in range(len(KERNEL))]
    outer = (shifted[0] + shifted[4]) * KERNEL[0]
    inner = (shifted[1] + shifted[3]) * KERNEL[1]
    return outer + inner + shifted[2] * KERNEL[2]


def degrade(patch, rng):
    """Camera model: optics, pixel grid, shot noise, 8-bit read-out."""
    blurred = smooth(smooth(patch, 0), 1)
    rows = blurred[::2] + blurred[1::2]
    coarse = (rows[:, ::2] + rows[:, 1::2]) * 0.25
    noisy = coarse + rng.standard_normal(coarse.shape, dtype=np.float32) * (0.5 + 0.05 * np.sqrt(coarse))
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


class AerialPairs(Dataset):
    def __init__(self, n_samples, patch):
        rng = np.random.default_rng(2)
        side = 8 * patch
        self.mosaic = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        self.n_samples, self.patch = n_samples, patch

    def __len__(self):
        return self.n_samples

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        y, x = rng.integers(0, len(self.mosaic) - self.patch, 2)
        high = np.rot90(self.mosaic[y:y + self.patch, x:x + self.patch], index % 4).copy()
        low = degrade(high.astype(np.float32), rng)
        return torch.from_numpy(low), torch.from_numpy(high)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.b(F.relu(self.a(x), inplace=True))


class SuperResolver(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.tail = nn.Conv2d(width, 16, 3, padding=1)

    def forward(self, low):
        return F.pixel_shuffle(self.tail(self.blocks(self.head(low)))[:, :12], 2)


def images(batch):
    """uint8 N x H x W x C on the host to bfloat16 channels-last tensors in [-1, 1] on the device."""
    on_device = (part.to(DEVICE, non_blocking=True).permute(0, 3, 1, 2) for part in batch)
    return [part.to(torch.bfloat16).div_(127.5).sub_(1) for part in on_device]


def main():
    torch.manual_seed(4)
    torch.backends.cudnn.benchmark = True
    pairs = AerialPairs(BATCH * STEPS, PATCH)
    loader = DataLoader(pairs, batch_size=BATCH, num_workers=14,
                        pin_memory=GPU, persistent_workers=True, prefetch_factor=4)
    model = SuperResolver(WIDTH, DEPTH).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4, fused=True)
    total = torch.zeros((), device=DEVICE)
    for batch in loader:
        low, high = images(batch)
        with torch.autocast(DEVICE.type, torch.bfloat16):
            restored = model(low)
        loss = F.l1_loss(restored, high)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"mean L1 over {len(loader)} steps: {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
