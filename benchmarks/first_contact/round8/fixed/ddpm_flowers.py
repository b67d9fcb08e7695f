"""Denoising diffusion on 128 x 128 images (pixel-unshuffled UNet, cosine schedule)."""

import math

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

device = "cuda" if torch.cuda.is_available() else "cpu"
big = device == "cuda"
image_size = 128 if big else 32
batch_size = 96 if big else 2
width = 128 if big else 16
steps = 150 if big else 3
timesteps = 1000


class ResBlock(nn.Module):
    def __init__(self, c, cemb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, c), nn.GroupNorm(8, c)
        self.conv1, self.conv2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.emb = nn.Linear(cemb, c)

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x))) + self.emb(emb)[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class UNet(nn.Module):
    def __init__(self, w, patch=4):
        super().__init__()
        self.patch, self.w = patch, w
        self.time = nn.Sequential(nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w), nn.SiLU())
        self.stem = nn.Conv2d(3 * patch**2, w, 3, padding=1)
        self.high = nn.ModuleList([ResBlock(w, 4 * w) for _ in range(2)])
        self.down = nn.Conv2d(w, 2 * w, 2, 2)
        self.low = nn.ModuleList([ResBlock(2 * w, 4 * w) for _ in range(3)])
        self.up = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.last = ResBlock(w, 4 * w)
        self.out = nn.Conv2d(w, 3 * patch**2, 3, padding=1)
        self.register_buffer("freqs", torch.exp(-math.log(10000) * torch.arange(w // 2) / (w // 2)))

    def forward(self, x, t):
        angle = t[:, None] * self.freqs
        emb = self.time(torch.cat([angle.sin(), angle.cos()], dim=1))
        x = self.stem(F.pixel_unshuffle(x, self.patch))
        for block in self.high:
            x = block(x, emb)
        y = self.down(x)
        for block in self.low:
            y = block(y, emb)
        x = self.last(x + self.up(y), emb)
        return F.pixel_shuffle(self.out(x), self.patch)


# the whole (small) data set lives on the device
flowers = torch.randint(0, 256, (1024 if big else 8, 3, image_size, image_size), dtype=torch.uint8, device=device)

s = torch.linspace(0, 1, timesteps + 1, device=device)
alphas_bar = torch.cos((s + 0.008) / 1.008 * math.pi / 2).square()[1:].clamp(min=1e-4)
sqrt_ab, sqrt_one_minus_ab = alphas_bar.sqrt(), (1 - alphas_bar).sqrt()

model = UNet(width).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)

for step in range(steps):
    index = torch.randint(0, len(flowers), (batch_size,), device=device)
    x0 = flowers[index].float().div_(127.5).sub_(1)
    noise = torch.randn_like(x0)
    t = torch.randint(0, timesteps, (batch_size,), device=device)
    xt = torch.addcmul(sqrt_ab[t].view(-1, 1, 1, 1) * x0, sqrt_one_minus_ab[t].view(-1, 1, 1, 1), noise)
    with torch.autocast(device, dtype=torch.bfloat16):
        predicted = model(xt.contiguous(memory_format=torch.channels_last), t)
    loss = F.mse_loss(predicted.float(), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.4f}")
