"""Pixel-space DDPM on sprites: a small convolutional denoiser with time modulation."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

HAVE_GPU = torch.cuda.is_available()


@dataclass(frozen=True)
class Config:
    image: int = 64 if HAVE_GPU else 16
    batch: int = 256 if HAVE_GPU else 8
    width: int = 128 if HAVE_GPU else 16
    blocks: int = 3 if HAVE_GPU else 1
    steps: int = 150 if HAVE_GPU else 5
    diffusion_steps: int = 1000
    lr: float = 2e-4
    seed: int = 7


class Schedule(nn.Module):
    def __init__(self, n):
        super().__init__()
        alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, n), 0)
        self.register_buffer("signal", alphas.sqrt())
        self.register_buffer("noise", (1 - alphas).sqrt())

    def mix(self, x0, eps, t):
        return self.signal[t, None, None, None] * x0 + self.noise[t, None, None, None] * eps


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, width), nn.GroupNorm(8, width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.modulate = nn.Linear(width, 2 * width)

    def forward(self, x, emb):
        scale, shift = self.modulate(emb)[:, :, None, None].chunk(2, dim=1)
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.norm2(h) * (1 + scale) + shift
        return x + self.conv2(F.silu(h))


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inlet = nn.Conv2d(3, cfg.width, 4, stride=2, padding=1)
        self.blocks = nn.ModuleList(Block(cfg.width) for _ in range(cfg.blocks))
        self.outlet = nn.ConvTranspose2d(cfg.width, 3, 4, stride=2, padding=1)
        self.time = nn.Embedding(cfg.diffusion_steps, cfg.width)

    def forward(self, x, t):
        emb = self.time(t)
        h = self.inlet(x)
        for block in self.blocks:
            h = block(h, emb)
        return self.outlet(h)


def sprite_batches(cfg, device):
    """Endless batches from a pool that fits on the device."""
    pool = torch.randint(0, 256, (16 * cfg.batch, 3, cfg.image, cfg.image), dtype=torch.uint8, device=device)
    pool = pool.contiguous(memory_format=torch.channels_last)
    while True:
        rows = torch.randint(0, len(pool), (cfg.batch,), device=device)
        yield pool[rows].float().div_(127.5).sub_(1)


def train(cfg, device):
    torch.manual_seed(cfg.seed)
    schedule = Schedule(cfg.diffusion_steps).to(device)
    model = Denoiser(cfg).to(device, memory_format=torch.channels_last)
    denoise = torch.compile(model) if HAVE_GPU else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    history = torch.zeros(cfg.steps, device=device)
    batches = sprite_batches(cfg, device)
    for step in range(cfg.steps):
        x0 = next(batches)
        eps = torch.randn(x0.shape).to(device)  # flaw: tensor-made-on-host
        t = torch.randint(0, cfg.diffusion_steps, (cfg.batch,), device=device)
        with torch.autocast(device.type, torch.bfloat16):
            predicted = denoise(schedule.mix(x0, eps, t), t)
            loss = F.mse_loss(predicted.float(), eps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history[step] = loss.detach()
    return history.cpu()


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    curve = train(Config(), torch.device("cuda" if HAVE_GPU else "cpu"))
    print(f"loss: start {curve[0].item():.3f} end {curve[-5:].mean().item():.3f}")
