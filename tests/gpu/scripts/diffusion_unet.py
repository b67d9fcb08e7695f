"""Denoising diffusion with a small U-Net: compiled, channels_last, bf16; noise is made on the device."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
CHANNELS, STEPS = 128, 1000


class Residual(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.norm = nn.GroupNorm(8, inside)
        self.first = nn.Conv2d(inside, outside, 3, padding=1)
        self.time = nn.Linear(CHANNELS, outside)
        self.second = nn.Conv2d(outside, outside, 3, padding=1)
        self.skip = nn.Conv2d(inside, outside, 1)

    def forward(self, x, t):
        h = self.first(F.silu(self.norm(x))) + self.time(t)[:, :, None, None]
        return self.second(F.silu(h)) + self.skip(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = nn.Embedding(STEPS, CHANNELS)
        self.stem = nn.Conv2d(8, CHANNELS, 3, padding=1)
        self.down = Residual(CHANNELS, CHANNELS)
        self.middle = Residual(CHANNELS, CHANNELS)
        self.up = Residual(2 * CHANNELS, CHANNELS)
        self.out = nn.Conv2d(CHANNELS, 8, 3, padding=1)

    def forward(self, x, t):
        t = self.times(t)
        high = self.down(self.stem(x), t)
        low = self.middle(F.avg_pool2d(high, 2), t)
        return self.out(self.up(torch.cat([high, F.interpolate(low, scale_factor=2)], 1), t))


class Latents(Dataset):
    latents = torch.randn(1024, 8, 64, 64)

    def __len__(self):
        return 500_000

    def __getitem__(self, index):
        latent = self.latents[index % 1024]
        return latent.flip(-1) if index % 2 else latent


def main():
    device = torch.device("cuda", 0)
    net = UNet().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, STEPS, device=device), 0)
    loader = DataLoader(Latents(), 64, True, num_workers=4, pin_memory=True, persistent_workers=True)

    @torch.compile
    def denoising_loss(x, t, noise):
        a = kept[t][:, None, None, None]
        with torch.autocast("cuda", torch.bfloat16):
            return F.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * noise, t).float(), noise)

    for x in loader:
        x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
        t = torch.randint(0, STEPS, (len(x),), device=device)
        loss = denoising_loss(x, t, torch.randn_like(x))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


main()
