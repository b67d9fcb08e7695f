"""Denoising score matching on vectors of latents with a wide residual network."""
import os
from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    latent: int = 1024
    width: int = 2048
    depth: int = 6
    batch: int = 4096
    steps: int = 80


class Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(F.silu(self.a(self.norm(x))))


class Score(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.enter, self.leave = nn.Linear(c.latent + 8, c.width), nn.Linear(c.width, c.latent)
        self.blocks = nn.Sequential(*(Residual(c.width) for _ in range(c.depth)))

    def forward(self, x, sigma):
        level = sigma.log().expand(-1, 8)
        return self.leave(self.blocks(self.enter(torch.cat([x, level], 1))))


def main() -> None:
    c = Config(16, 16, 2, 8, 30) if os.environ.get("SMALL") == "1" else Config()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Score(c).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    latents = torch.randn(c.batch * 4, c.latent, device=device)
    for step in range(1, c.steps + 1):
        clean = latents[(step % 4) * c.batch :][: c.batch]
        sigma = torch.empty(c.batch, 1, device=device).uniform_(-3, 2).exp_()
        noise = torch.randn_like(clean)
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(clean + sigma * noise, sigma)
        loss = F.mse_loss(guess.float(), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0 or step == c.steps:
            print(f"{step:4d} {loss.item():.4f}")


if __name__ == "__main__":
    main()
