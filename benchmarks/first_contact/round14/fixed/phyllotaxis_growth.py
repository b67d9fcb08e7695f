"""Fits a neural differential equation to the growth of leaf primordia (Runge-Kutta steps)."""
import argparse
import os
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--plants", type=int, default=16 if TINY else 8192)
    p.add_argument("--width", type=int, default=16 if TINY else 512)
    p.add_argument("--stages", type=int, default=3 if TINY else 12)
    p.add_argument("--rounds", type=int, default=4 if TINY else 130)
    p.add_argument("--watch-gradients", action=argparse.BooleanOptionalAction, default=False)
    return p.parse_args()


def growth(width):
    return nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 8))


def runge_kutta(f, y, h):
    a = f(y)
    b = f(y + a * (h / 2))
    c = f(y + b * (h / 2))
    d = f(y + c * h)
    return y + (a + 2 * b + 2 * c + d) * (h / 6)


def fit(o, device):
    torch.manual_seed(12)
    f = growth(o.width).to(device)
    opt = torch.optim.AdamW(f.parameters(), lr=1e-3, fused=True)
    turn = torch.linalg.matrix_exp(torch.randn(8, 8) * 0.3).to(device)
    losses = []
    with torch.autograd.set_detect_anomaly(o.watch_gradients):
        for _ in range(o.rounds):
            y = seed = torch.randn(o.plants, 8, device=device)
            with torch.autocast(device, torch.bfloat16):
                for _ in range(o.stages):
                    y = runge_kutta(f, y, 1 / o.stages)
            loss = nn.functional.mse_loss(y, seed @ turn)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
    print("growth error", round(torch.stack(losses).mean().item(), 3))


fit(options(), "cuda" if torch.cuda.is_available() else "cpu")
