"""3D U-Net on four-channel MR volumes (patches), with a combined Dice and cross-entropy loss."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

on_gpu = torch.cuda.is_available()
device = torch.device("cuda" if on_gpu else "cpu")
cfg = {
    "patients": 8 if on_gpu else 2,
    "volume": 128 if on_gpu else 24,
    "patch": 96 if on_gpu else 16,
    "batch": 4 if on_gpu else 1,
    "width": 16 if on_gpu else 4,
    "steps": 160 if on_gpu else 2,
    "workers": 8 if on_gpu else 1,
}


class PatchStream(IterableDataset):
    """Endless stream of random patches; every worker draws its own."""

    def __init__(self, patients, volume, patch):
        generator = torch.Generator().manual_seed(0)
        self.scans = torch.randn(patients, 4, volume, volume, volume, generator=generator)
        self.masks = torch.randint(0, 4, (patients, volume, volume, volume), generator=generator, dtype=torch.uint8)
        self.patch = patch

    def __iter__(self):
        worker = get_worker_info()
        generator = torch.Generator().manual_seed(100 + (worker.id if worker else 0))
        span = self.scans.shape[-1] - self.patch
        while True:
            p = int(torch.randint(len(self.scans), (1,), generator=generator))
            z, y, x = torch.randint(span, (3,), generator=generator).tolist()
            box = (slice(z, z + self.patch), slice(y, y + self.patch), slice(x, x + self.patch))
            yield self.scans[(p, slice(None), *box)], self.masks[(p, *box)]


class Stage(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv3d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm3d(cout),
            nn.LeakyReLU(0.01, inplace=True),
            nn.Conv3d(cout, cout, 3, padding=1, bias=False),
            nn.BatchNorm3d(cout),
            nn.LeakyReLU(0.01, inplace=True),
        )


class UNet3d(nn.Module):
    def __init__(self, width):
        super().__init__()
        w = width
        self.enc1, self.enc2, self.enc3 = Stage(4, w), Stage(w, 2 * w), Stage(2 * w, 4 * w)
        self.bottom = Stage(4 * w, 8 * w)
        self.up3, self.dec3 = nn.ConvTranspose3d(8 * w, 4 * w, 2, 2), Stage(8 * w, 4 * w)
        self.up2, self.dec2 = nn.ConvTranspose3d(4 * w, 2 * w, 2, 2), Stage(4 * w, 2 * w)
        self.up1, self.dec1 = nn.ConvTranspose3d(2 * w, w, 2, 2), Stage(2 * w, w)
        self.head = nn.Conv3d(w, 4, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool3d(a, 2))
        c = self.enc3(F.max_pool3d(b, 2))
        d = self.bottom(F.max_pool3d(c, 2))
        c = self.dec3(torch.cat([self.up3(d), c], 1))
        b = self.dec2(torch.cat([self.up2(c), b], 1))
        a = self.dec1(torch.cat([self.up1(b), a], 1))
        return self.head(a)


def dice_ce(logits, target):
    probabilities = logits.float().softmax(1)
    onehot = F.one_hot(target, 4).permute(0, 4, 1, 2, 3).to(probabilities.dtype)
    overlap = (probabilities * onehot).sum((0, 2, 3, 4))
    size = probabilities.sum((0, 2, 3, 4)) + onehot.sum((0, 2, 3, 4))
    return F.cross_entropy(logits, target) + 1 - (2 * overlap / size.clamp_min(1)).mean()


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
stream = PatchStream(cfg["patients"], cfg["volume"], cfg["patch"])
loader = DataLoader(stream, batch_size=cfg["batch"], num_workers=cfg["workers"], prefetch_factor=2)  # flaw: pageable-host-copy
net = UNet3d(cfg["width"]).to(device, memory_format=torch.channels_last_3d)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4, weight_decay=1e-5, fused=on_gpu)

history = []
batches = iter(loader)
for step in range(cfg["steps"]):
    scans, masks = next(batches)
    scans = scans.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last_3d)
    masks = masks.to(device, non_blocking=True).long()
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = dice_ce(net(scans), masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.detach())
    if (step + 1) % 40 == 0:
        print(f"step {step + 1}: loss {torch.stack(history[-40:]).mean().item():.4f}")
print("final", torch.stack(history).mean().item())
