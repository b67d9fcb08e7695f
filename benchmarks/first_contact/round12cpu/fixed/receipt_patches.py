# Receipt field detector: classifies crops of scanned receipts. The scans live on a network share;
# here they are kept in memory and a read waits as long as the share does.
from dataclasses import dataclass
import io
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


@dataclass
class Config:
    n_scans: int = 48
    batch: int = 16
    side: int = 48
    lr: float = 1e-3
    max_steps: int = 150


def make_scan(rng):
    page = np.full((160, 140), 235, np.uint8)
    for row in range(10, 150, 14):
        page[row:row + 6, 20:20 + int(rng.integers(20, 110))] = rng.integers(20, 90)
    noisy = np.clip(page + rng.normal(0, 12, page.shape), 0, 255).astype(np.uint8)
    buf = io.BytesIO()
    Image.fromarray(noisy).convert("RGB").save(buf, "JPEG", quality=88)
    return buf.getvalue()


class ReceiptCrops(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(11)
        self.scans = [make_scan(rng) for _ in range(cfg.n_scans)]
        self.cfg = cfg

    def __len__(self):
        return 40 * len(self.scans)

    def read(self, k):
        time.sleep(0.0015)
        return self.scans[k]

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        img = Image.open(io.BytesIO(self.read(i % len(self.scans))))
        x, y = int(rng.integers(0, 40)), int(rng.integers(0, 60))
        crop = img.rotate(float(rng.uniform(-3, 3)), fillcolor=(235, 235, 235)).crop((x, y, x + 96, y + 96))
        crop = crop.resize((self.cfg.side, self.cfg.side), Image.BILINEAR)
        arr = torch.from_numpy(np.array(crop)).permute(2, 0, 1).float().div_(255)
        return arr, int(arr.mean() < 0.8)


def net():
    return nn.Sequential(
        nn.Conv2d(3, 24, 5, 2, 2), nn.ReLU(inplace=True),
        nn.Conv2d(24, 48, 3, 2, 1), nn.ReLU(inplace=True),
        nn.Conv2d(48, 96, 3, 1, 1), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(96 * 16, 2)).to(memory_format=torch.channels_last)


def fit(cfg):
    torch.manual_seed(7)
    loader = DataLoader(ReceiptCrops(cfg), cfg.batch, shuffle=True, drop_last=True, num_workers=2,
                        persistent_workers=True)
    model = net()
    opt = torch.optim.SGD(model.parameters(), cfg.lr, momentum=0.9)
    step, seen = 0, torch.zeros(())
    while step < cfg.max_steps:
        for crops, label in loader:
            loss = F.cross_entropy(model(crops.to(memory_format=torch.channels_last)), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += loss.detach()
            step += 1
            if step % 50 == 0:
                print(f"{step:5d}  mean loss {seen.item() / step:.4f}")
            if step >= cfg.max_steps:
                break
    return model


fit(Config())
