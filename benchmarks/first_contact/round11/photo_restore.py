"""Image restoration (denoising) with a plain residual network and channel-wise layer norms."""
from __future__ import annotations

import torch
from torch import nn, Tensor
from torch.nn import functional as F


class ChannelNorm(nn.Module):
    """Layer norm over the channels of an (N, C, H, W) tensor."""

    def __init__(self, channels: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)  # flaw: hand-written-norm
        var = (x - mean).pow(2).mean(1, keepdim=True)  # flaw: hand-written-norm
        x = (x - mean) / torch.sqrt(var + self.eps)  # flaw: hand-written-norm
        return self.weight[:, None, None] * x + self.bias[:, None, None]  # flaw: hand-written-norm


class RestoreBlock(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.norm = ChannelNorm(channels)
        self.spatial = nn.Conv2d(channels, channels, 3, padding=1)
        self.mix = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = F.gelu(self.spatial(self.norm(x)))
        return x + self.mix(h)


class Restorer(nn.Module):
    def __init__(self, channels: int, depth: int):
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.Sequential(*(RestoreBlock(channels) for _ in range(depth)))
        self.leave = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, noisy: Tensor) -> Tensor:
        return noisy - self.leave(self.body(self.enter(noisy)))


class Trainer:
    max_steps = 120

    def __init__(self, model: nn.Module, device: str, lr: float = 2e-4):
        self.device = device
        self.model = model.to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, fused=True)
        self.psnr: list[Tensor] = []

    def configure(self, steps: int) -> "Trainer":
        self.max_steps = steps
        torch.backends.cudnn.benchmark = True
        return self

    def training_step(self, clean: Tensor, noise: Tensor) -> Tensor:
        with torch.autocast(self.device, dtype=torch.bfloat16):
            restored = self.model(clean + noise)
        loss = F.mse_loss(restored.float(), clean.float())
        self.psnr.append(-10 * loss.detach().log10())
        return loss

    def fit(self, batches) -> "Trainer":
        for index, (clean, noise) in enumerate(batches):
            if index == self.max_steps:
                break
            loss = self.training_step(clean, noise)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if (index + 1) % 60 == 0:
                print(f"step {index + 1}: psnr {torch.stack(self.psnr[-60:]).mean().item():.2f} dB")
        return self

    def summary(self) -> str:
        return f"psnr {self.psnr[0].item():.2f} dB -> {self.psnr[-1].item():.2f} dB"


def patches(batch: int, side: int, device: str):
    """Endless clean patches (smooth random images) and matching noise, channels last."""
    gen = torch.Generator(device).manual_seed(0)
    like = dict(device=device, generator=gen)
    coarse = torch.rand(6, batch, 3, side // 8, side // 8, **like)
    pool = [F.interpolate(c, scale_factor=8, mode="bicubic").to(torch.bfloat16) for c in coarse]
    pool = [p.contiguous(memory_format=torch.channels_last) for p in pool]
    step = 0
    while True:
        clean = pool[step % len(pool)]
        noise = torch.empty_like(clean).normal_(0.0, 0.1, generator=gen)
        yield clean, noise
        step += 1


if __name__ == "__main__":
    cuda = torch.cuda.is_available()
    channels, depth, batch, side, steps = (64, 6, 8, 256, 120) if cuda else (8, 2, 2, 16, 3)
    where = "cuda" if cuda else "cpu"
    torch.manual_seed(0)
    trainer = Trainer(Restorer(channels, depth), where).configure(steps)
    print(trainer.fit(patches(batch, side, where)).summary())
