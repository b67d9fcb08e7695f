"""Denoising diffusion on latent vectors."""
from __future__ import annotations

import torch
from torch import Tensor, nn


class Schedule:
    def __init__(self, steps: int, device: str) -> None:
        betas = torch.linspace(1e-4, 0.02, steps, device=device)
        self.alpha_bar: Tensor = torch.cumprod(1 - betas, 0)
        self.steps = steps

    def corrupt(self, x: Tensor, t: Tensor, eps: Tensor) -> Tensor:
        a = self.alpha_bar[t, None]
        return torch.addcmul(x * a.sqrt(), eps, (1 - a).sqrt())


class Denoiser(nn.Module):
    def __init__(self, dim: int, hidden: int, steps: int) -> None:
        super().__init__()
        self.time = nn.Embedding(steps, hidden)
        self.enter = nn.Linear(dim, hidden)
        self.middle = nn.ModuleList([nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.SiLU()) for _ in range(4)])
        self.leave = nn.Linear(hidden, dim)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h = self.enter(x) + self.time(t)
        for part in self.middle:
            h = h + part(h)
        return self.leave(h)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dim, hidden, batch = 1024, 2048, 8192
    schedule = Schedule(1000, device)
    model = Denoiser(dim, hidden, schedule.steps).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    latents = torch.randn(4 * batch, dim, device=device)
    for it in range(400):
        x = latents[torch.randint(0, len(latents), (batch,), device=device)]
        t = torch.randint(0, schedule.steps, (batch,), device=device)
        eps = torch.randn(batch, dim).to(device)  # flaw: tensor-made-on-host
        noisy = schedule.corrupt(x, t, eps)
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(noisy, t)
        loss = nn.functional.mse_loss(guess.float(), eps)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(f"{it:5d} {loss.item():.4f}")


main()
