"""Denoising diffusion on audio snippets, EMA of the weights, a short sampling run at the end."""
import copy
import math

import torch
from torch import nn


class Schedule(nn.Module):
    def __init__(self, steps=100):
        super().__init__()
        t = torch.linspace(0, 1, steps + 1)
        alpha_bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2).square()
        self.register_buffer("alpha_bar", (alpha_bar / alpha_bar[0])[1:].clamp(min=1e-4))

    def noisy(self, x, t, noise):
        a = self.alpha_bar[t].view(-1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self, ch=32, steps=100):
        super().__init__()
        self.time = nn.Embedding(steps, ch)
        self.inp = nn.Conv1d(1, ch, 7, padding=3)
        self.mid = nn.ModuleList(nn.Conv1d(ch, ch, 3, padding=2 ** k, dilation=2 ** k) for k in range(4))
        self.out = nn.Conv1d(ch, 1, 1)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t).unsqueeze(-1)
        for conv in self.mid:
            h = h + nn.functional.silu(conv(h))
        return self.out(h)


class Experiment:
    def __init__(self):
        torch.manual_seed(3)
        self.gen = torch.Generator().manual_seed(3)
        self.total = 500
        self.schedule, self.net = Schedule(), Denoiser()
        self.ema = copy.deepcopy(self.net).requires_grad_(False)
        self.pairs = list(self.ema.parameters()), list(self.net.parameters())
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3, fused=True)
        self.time_axis = torch.linspace(0, 1, 256)

    def snippets(self, n):
        f = 3 + 6 * torch.rand(n, 1, 1, generator=self.gen)
        return torch.sin(2 * math.pi * f * self.time_axis)

    def step(self):
        x = self.snippets(12)
        t = torch.randint(0, 100, (12,), generator=self.gen)
        noise = torch.randn(x.shape, generator=self.gen)
        loss = nn.functional.mse_loss(self.net(self.schedule.noisy(x, t, noise), t), noise)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(*self.pairs, 0.01)
        return loss

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 1, 256, generator=self.gen)
        for k in range(99, -1, -5):
            t = torch.full((n,), k)
            a = self.schedule.alpha_bar[k]
            clean = ((x - (1 - a).sqrt() * self.ema(x, t)) / a.sqrt()).clamp(-1, 1)
            b = self.schedule.alpha_bar[k - 5] if k >= 5 else torch.ones(())
            x = b.sqrt() * clean + (1 - b).sqrt() * torch.randn(x.shape, generator=self.gen)
        return x

    def run(self):
        for k in range(1, self.total + 1):
            loss = self.step()
            if k % 250 == 0:
                print(f"step {k} loss {loss.item():.4f}")
        print(f"sample spread {self.sample(4).std().item():.4f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    Experiment().run()
