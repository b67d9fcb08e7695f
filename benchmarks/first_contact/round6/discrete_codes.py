"""Learns discrete codes of sensor windows with a Gumbel quantiser whose temperature falls over time."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
P = dict(window=16, dim=32, codes=32, batch=16, steps=30) if SMALL else dict(window=512, dim=1024, codes=2048, batch=8192, steps=200)


class Quantiser(nn.Module):
    def __init__(self, dim, codes):
        super().__init__()
        self.score = nn.Linear(dim, codes)
        self.book = nn.Parameter(torch.randn(codes, dim) * 0.05)
        self.seen = 0  # flaw: recompilation

    def temperature(self):
        return 0.5 + 1.5 / (1.0 + 0.01 * self.seen)

    def forward(self, h):
        logits = self.score(h).float()
        noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)))
        soft = torch.softmax((logits + noise) / self.temperature(), -1)
        usage = soft.mean(0)
        balance = (usage * torch.log(usage + 1e-8)).sum()
        return soft.to(self.book.dtype) @ self.book, balance


class Coder(nn.Module):
    def __init__(self, window, dim, codes):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(window, dim), nn.GELU(), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.quantise = Quantiser(dim, codes)
        self.decode = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, window))

    def forward(self, x):
        z, balance = self.quantise(self.encode(x))
        return self.decode(z), balance


class Annealing:
    """Called after each update, as the other schedules."""

    def __init__(self, quantiser):
        self.quantiser = quantiser

    def step(self):
        self.quantiser.seen += 1


def windows(p):
    g = torch.Generator(device).manual_seed(0)
    t = torch.arange(p["window"], device=device) / 20
    for _ in range(p["steps"]):
        f = torch.rand(p["batch"], 1, device=device, generator=g)
        yield torch.sin(t * (0.5 + f)) + 0.1 * torch.randn(p["batch"], p["window"], device=device, generator=g)


def main():
    torch.manual_seed(0)
    coder = Coder(P["window"], P["dim"], P["codes"]).to(device)
    coder.quantise.compile(backend="inductor" if device.type == "cuda" else "eager")
    opt = torch.optim.AdamW(coder.parameters(), lr=3e-4, fused=True)
    anneal = Annealing(coder.quantise)
    for i, x in enumerate(windows(P)):
        with torch.autocast(device.type, torch.bfloat16):
            y, balance = coder(x)
        loss = F.mse_loss(y.float(), x) + 0.01 * balance
        opt.zero_grad()
        loss.backward()
        opt.step()
        anneal.step()
        if i % 50 == 0:
            print(i, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
