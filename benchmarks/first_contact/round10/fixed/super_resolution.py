"""4x super-resolution: residual blocks with large kernels, L1 + frequency loss."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = True
gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")

batch_size = 16 if gpu else 2
low = 96 if gpu else 16
channels = 96 if gpu else 8
blocks = 8 if gpu else 2
iterations = 150 if gpu else 3
scale = 4


def gelu(x):
    return F.gelu(x, approximate="tanh")


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.spatial = nn.Conv2d(c, c, 3, padding=1)
        self.expand = nn.Conv2d(c, 2 * c, 1)
        self.project = nn.Conv2d(2 * c, c, 1)

    def forward(self, x):
        return x + self.project(gelu(self.expand(self.spatial(x))))


class Upscaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.Sequential(*[Block(channels) for _ in range(blocks)])
        self.tail = nn.Conv2d(channels, 3 * scale**2, 3, padding=1)

    def forward(self, x):
        h = self.head(x)
        h = h + self.body(h)
        return F.pixel_shuffle(self.tail(h), scale) + F.interpolate(x, scale_factor=scale, mode="nearest")


model = Upscaler().to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.99), fused=gpu)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations)
photos = torch.rand(4 * batch_size, 3, low * scale, low * scale, device=device)

for it in range(iterations):
    pick = torch.randint(len(photos), (batch_size,), device=device)
    sharp = photos[pick]
    small = F.avg_pool2d(sharp, scale).contiguous(memory_format=torch.channels_last)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        restored = model(small)
    restored = restored.float()
    loss = F.l1_loss(restored, sharp)
    spectrum = torch.fft.rfft2(restored[:, 0] - sharp[:, 0], norm="ortho")
    loss = loss + 0.05 * torch.view_as_real(spectrum).abs().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if it % 50 == 0:
        print(f"{it:4d} {loss.item():.4f}")
