"""Denoising diffusion on four-channel terrain latents."""
from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
WIDTH, SIDE, BATCH, STEPS = (128, 64, 64, 130) if CUDA else (16, 16, 2, 4)


class ResBlock(nn.Module):
    def __init__(self, cin: int, cout: int, time: int):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, cin), nn.GroupNorm(8, cout)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.time = nn.Linear(time, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    """Two resolutions with a skip connection; trained to predict the noise."""

    def __init__(self, width: int, channels: int = 4):
        super().__init__()
        w, time = width, 4 * width
        self.embed = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time), nn.SiLU())
        self.enter = nn.Conv2d(channels, w, 3, padding=1)
        self.high1 = ResBlock(w, w, time)
        self.down = nn.Conv2d(w, 2 * w, 2, 2)
        self.low1, self.low2 = ResBlock(2 * w, 2 * w, time), ResBlock(2 * w, 2 * w, time)
        self.up = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.high2 = ResBlock(2 * w, w, time)
        self.norm = nn.GroupNorm(8, w)
        self.leave = nn.Conv2d(w, channels, 3, padding=1)
        rate = torch.exp(-math.log(10_000.0) * torch.arange(width // 2) / (width // 2))
        self.register_buffer("rate", rate, persistent=False)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        angle = step[:, None].float() * self.rate
        t = self.embed(torch.cat([angle.sin(), angle.cos()], dim=-1))
        a = self.high1(self.enter(x), t)
        b = self.low2(self.low1(self.down(a), t), t)
        h = self.high2(torch.cat([a, self.up(b)], dim=1), t)
        return self.leave(F.silu(self.norm(h)))


class Diffusion:
    def __init__(self, levels: int = 1000):
        beta = torch.linspace(1e-4, 0.02, levels, device=DEVICE)
        alpha_bar = torch.cumprod(1.0 - beta, dim=0)
        self.signal, self.noise = alpha_bar.sqrt(), (1.0 - alpha_bar).sqrt()
        self.levels = levels

    def corrupt(self, x: Tensor, gen: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        step = torch.randint(self.levels, (len(x),), device=DEVICE, generator=gen)
        eps = torch.empty_like(x).normal_(generator=gen)
        noisy = self.signal[step].view(-1, 1, 1, 1) * x + self.noise[step].view(-1, 1, 1, 1) * eps
        return noisy, eps, step


class Average:
    """Exponential moving average of the weights."""

    def __init__(self, model: nn.Module, decay: float = 0.999):
        self.decay = decay
        self.live = list(model.parameters())
        self.shadow = [p.detach().clone() for p in self.live]

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(self.shadow, self.live, 1.0 - self.decay)


def terrain(pool: int, gen: torch.Generator) -> list[Tensor]:
    batches = []
    for _ in range(pool):
        coarse = torch.randn(BATCH, 4, SIDE // 8, SIDE // 8, device=DEVICE, generator=gen)
        smooth = F.interpolate(coarse, size=(SIDE, SIDE), mode="bicubic")
        batches.append(smooth.contiguous(memory_format=torch.channels_last))
    return batches


def main() -> None:
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    gen = torch.Generator(DEVICE).manual_seed(0)
    model = Denoiser(WIDTH).to(DEVICE, memory_format=torch.channels_last)
    if CUDA:
        model.compile()
    average, diffusion, batches = Average(model), Diffusion(), terrain(8, gen)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    losses = []
    for i in range(STEPS):
        noisy, eps, step = diffusion.corrupt(batches[i % len(batches)], gen)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            guess = model(noisy, step)
        loss = F.mse_loss(guess.float(), eps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        losses.append(loss.detach())
    print(f"loss {losses[0].item():.4f} -> {torch.stack(losses[-10:]).mean().item():.4f}")


if __name__ == "__main__":
    main()
