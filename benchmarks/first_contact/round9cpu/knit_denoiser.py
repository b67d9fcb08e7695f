"""Denoises textile photographs with a small residual CNN, EMA weights for evaluation."""

import torch
import torch.nn.functional as F
from torch import nn


class EmaMixin:
    def start_ema(self, decay=0.99):
        self.ema_decay = decay
        self.live = list(self.parameters())
        self.shadow = [p.detach().clone() for p in self.live]

    @torch.no_grad()
    def update_ema(self):
        torch._foreach_lerp_(self.shadow, self.live, 1 - self.ema_decay)

    @torch.no_grad()
    def use_ema(self):
        torch._foreach_copy_(self.live, self.shadow)


class Denoiser(EmaMixin, nn.Module):
    def __init__(self, width=24, depth=4):
        super().__init__()
        layers = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU(inplace=True)]
        for _ in range(depth - 2):
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers, nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x):
        return x - self.body(x)


def textiles(n, size):
    grid = torch.arange(size).float()
    period = torch.rand(n, 1, 1) * 8 + 4
    tilt = torch.rand(n, 1, 1)
    return torch.sin((grid[:, None] + tilt * grid) * 6.28 / period)[:, None]


def psnr(a, b):
    return -10 * (a - b).square().mean().log10().item()


def main(steps=130, batch=8, size=64, sigma=0.4):
    torch.manual_seed(0)
    clean = textiles(400, size)
    train, test = clean[:360], clean[360:]
    model = Denoiser()
    model.start_ema()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(1, steps + 1):
        target = train[torch.randint(len(train), (batch,))]
        noisy = torch.randn_like(target).mul_(sigma).add_(target)
        loss = F.l1_loss(model(noisy), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_ema()
        if step % 25 == 0:
            print(f"step {step} l1 {loss.item():.4f}")
    model.use_ema()
    with torch.inference_mode():
        noisy = test + sigma * torch.randn_like(test)
        print(f"psnr noisy {psnr(noisy, test):.2f} denoised {psnr(model(noisy), test):.2f}")


if __name__ == "__main__":
    main()
