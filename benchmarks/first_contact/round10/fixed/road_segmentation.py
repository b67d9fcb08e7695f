"""Road segmentation from aerial pictures: a small FPN, trained with random crops and jitter."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


@dataclass
class Config:
    crop: int = 256 if CUDA else 32
    scene: int = 512 if CUDA else 64
    scenes: int = 12 if CUDA else 2
    batch: int = 16 if CUDA else 2
    steps: int = 100 if CUDA else 2
    width: int = 64 if CUDA else 8
    lr: float = 3e-4
    device: str = "cuda" if CUDA else "cpu"


class Roads(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(0)
        self.cfg = cfg
        self.scenes = rng.integers(0, 255, (cfg.scenes, cfg.scene, cfg.scene, 3), dtype=np.uint8)
        self.roads = (rng.random((cfg.scenes, cfg.scene, cfg.scene)) < 0.1).astype(np.int64)

    def __len__(self):
        return self.cfg.batch * self.cfg.steps

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        k = i % self.cfg.scenes
        y, x = rng.integers(0, self.cfg.scene - self.cfg.crop, 2)
        window = np.s_[y : y + self.cfg.crop, x : x + self.cfg.crop]
        image = self.scenes[k][window].astype(np.float32) / 255
        mask = self.roads[k][window]
        if rng.random() < 0.5:
            image, mask = image[:, ::-1], mask[:, ::-1]
        image = np.clip(image * rng.uniform(0.7, 1.3) + rng.uniform(-0.1, 0.1), 0, 1)
        grey = image.mean(2, keepdims=True)
        image = grey + (image - grey) * rng.uniform(0.6, 1.4)
        image = image ** rng.uniform(0.8, 1.2) if image.min() >= 0 else image
        image = image + 0.02 * rng.standard_normal(image.shape, dtype=np.float32)
        chw = np.ascontiguousarray(image.transpose(2, 0, 1), dtype=np.float32)
        return torch.from_numpy(chw), torch.from_numpy(np.ascontiguousarray(mask))


class ConvBlock(nn.Sequential):
    def __init__(self, cin, cout, stride=1):
        super().__init__(
            nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
        )


class FPN(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.c1 = nn.Sequential(ConvBlock(3, w, 2), ConvBlock(w, w))
        self.c2 = nn.Sequential(ConvBlock(w, 2 * w, 2), ConvBlock(2 * w, 2 * w))
        self.c3 = nn.Sequential(ConvBlock(2 * w, 4 * w, 2), ConvBlock(4 * w, 4 * w))
        self.l1, self.l2, self.l3 = nn.Conv2d(w, w, 1), nn.Conv2d(2 * w, w, 1), nn.Conv2d(4 * w, w, 1)
        self.out = nn.Sequential(ConvBlock(w, w), nn.Conv2d(w, 2, 1))

    def forward(self, x):
        a = self.c1(x)
        b = self.c2(a)
        c = self.l3(self.c3(b))
        b = self.l2(b) + F.interpolate(c, scale_factor=2.0)
        a = self.l1(a) + F.interpolate(b, scale_factor=2.0)
        return F.interpolate(self.out(a), scale_factor=2.0, mode="bilinear")


def train(cfg: Config):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    net = FPN(cfg.width).to(cfg.device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), cfg.lr, fused=CUDA)
    loader = DataLoader(Roads(cfg), cfg.batch, shuffle=True, pin_memory=CUDA, num_workers=14 if CUDA else 0)
    for step, (image, mask) in enumerate(loader):
        image = image.to(cfg.device, non_blocking=True, memory_format=torch.channels_last)
        mask = mask.to(cfg.device, non_blocking=True)
        with torch.autocast(cfg.device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(image), mask)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(f"{step:4d} {loss.item():.4f}")


if __name__ == "__main__":
    train(Config())
