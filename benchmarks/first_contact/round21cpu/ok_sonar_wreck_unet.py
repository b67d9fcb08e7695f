#!/usr/bin/env python3
"""Finds wrecks in side-scan sonar tiles with a two-level U-Net."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

CONFIG = {
    "data": {"tiles": 480, "size": 64, "seed": 41},
    "model": {"width": 16},
    "train": {"batch": 8, "epochs": 12, "lr": 2e-3, "weight_decay": 1e-4},
}


def conv(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def double(inputs, outputs):
    return nn.Sequential(*conv(inputs, outputs), *conv(outputs, outputs))


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.top = double(1, width)
        self.mid = double(width, 2 * width)
        self.low = double(2 * width, 4 * width)
        self.up_mid = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.mid_again = double(4 * width, 2 * width)
        self.up_top = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.top_again = double(2 * width, width)
        self.mask = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.top(x)
        b = self.mid(F.max_pool2d(a, 2))
        c = self.low(F.max_pool2d(b, 2))
        c = self.mid_again(torch.cat([self.up_mid(c), b], dim=1))
        c = self.top_again(torch.cat([self.up_top(c), a], dim=1))
        return self.mask(c)


def sonar(tiles, size, seed):
    """Ripples and noise; a wreck is a bright ellipse with a shadow to its right."""
    g = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    number = torch.rand(6, tiles, 1, 1, generator=g)
    ripple = torch.sin(x * (0.2 + number[0]) + y * (0.2 + number[1])) * 0.3
    cx, cy = (number[2] * 0.6 + 0.2) * size, (number[3] * 0.6 + 0.2) * size
    rx, ry = 4 + 6 * number[4], 3 + 5 * number[5]
    wreck = (((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1).float()
    shadow = (((x - cx - 1.5 * rx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1).float()
    picture = ripple + wreck - 0.8 * shadow * (1 - wreck) + 0.5 * torch.randn(tiles, size, size, generator=g)
    return picture.unsqueeze(1), wreck.unsqueeze(1)


def soft_dice(logits, mask):
    share = logits.sigmoid()
    return 1 - (2 * (share * mask).sum() + 1) / (share.sum() + mask.sum() + 1)


def main(cfg):
    torch.manual_seed(cfg["data"]["seed"])
    tiles = TensorDataset(*sonar(**cfg["data"]))
    train = cfg["train"]
    batches = BatchSampler(RandomSampler(tiles), train["batch"], drop_last=True)
    loader = DataLoader(tiles, batch_size=None, sampler=batches)

    model = UNet(**cfg["model"]).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=train["lr"], weight_decay=train["weight_decay"], fused=True)
    updates = train["epochs"] * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, train["lr"], total_steps=updates)

    for epoch in range(train["epochs"]):
        total = torch.zeros(())
        for picture, mask in loader:
            picture = picture.contiguous(memory_format=torch.channels_last)
            logits = model(picture)
            loss = F.binary_cross_entropy_with_logits(logits, mask) + soft_dice(logits, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}/{train['epochs']} loss {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main(CONFIG)
