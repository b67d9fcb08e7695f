"""Roll out a learned surrogate of a 2-D flow solver and compare its statistics with those of the start."""
import argparse
import json

import torch
from torch import nn
import torch.nn.functional as F


class SurrogateStep(nn.Module):
    """Predicts the change of the (rho, u, v, p, four tracers) fields over one time step; periodic box."""

    def __init__(self, fields=8, width=64, depth=2):
        super().__init__()
        self.inp = nn.Conv2d(fields, width, 3, padding=1, padding_mode="circular")
        self.mid = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=1, padding_mode="circular") for _ in range(depth))
        self.out = nn.Conv2d(width, fields, 3, padding=1, padding_mode="circular")

    def forward(self, u):
        h = F.silu(self.inp(u))
        for conv in self.mid:
            h = h + F.silu(conv(h))
        return self.out(h)


def build(args):
    torch.manual_seed(args.seed)
    net = SurrogateStep(width=args.width).eval()
    net = net.to(args.device, args.dtype, memory_format=torch.channels_last)
    with torch.no_grad():
        net.out.weight.mul_(0.05)
        net.out.bias.zero_()
    if args.device == "cuda":
        torch.backends.cudnn.benchmark = True
        net.compile()
    return net


def rollout(net, u, steps, dtype):
    """Trajectory of shape (batch, steps + 1, fields, ny, nx), kept in float32."""
    trajectory = u[:, None]  # flaw: cat-in-loop
    for _ in range(steps):
        x = u.to(dtype, memory_format=torch.channels_last)
        u = u + net(x).float()
        trajectory = torch.cat([trajectory, u[:, None]], dim=1)  # flaw: cat-in-loop
    return trajectory  # flaw: cat-in-loop


def statistics(trajectory):
    """Kinetic energy and its drift, and the mean pressure over each trajectory."""
    speed2 = trajectory[:, :, 1].square() + trajectory[:, :, 2].square()
    energy = 0.5 * speed2.mean(dim=(-1, -2))
    return {
        "energy": energy.mean(),
        "drift": (energy[:, -1] - energy[:, 0]).mean(),
        "pressure": trajectory[:, :, 3].mean(),
    }


def initial_states(count, batch, n, device):
    """Random smooth fields: a few Fourier modes per field."""
    gen = torch.Generator(device).manual_seed(5)
    coarse = max(4, n // 16)
    for _ in range(count):
        modes = torch.randn(batch, 8, coarse, coarse, device=device, generator=gen)
        yield F.interpolate(modes, size=(n, n), mode="bicubic", align_corners=False)


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--device", default="cuda" if cuda else "cpu")
    ap.add_argument("--batch", type=int, default=32 if cuda else 2)
    ap.add_argument("--n", type=int, default=128 if cuda else 16)
    ap.add_argument("--width", type=int, default=64 if cuda else 8)
    ap.add_argument("--steps", type=int, default=48 if cuda else 5)
    ap.add_argument("--rollouts", type=int, default=110 if cuda else 2)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    args.dtype = torch.bfloat16 if cuda else torch.float32

    net = build(args)
    collected = []
    with torch.no_grad():
        for u in initial_states(args.rollouts, args.batch, args.n, args.device):
            collected.append(statistics(rollout(net, u, args.steps, args.dtype)))
    summary = {k: round(torch.stack([c[k] for c in collected]).mean().item(), 5) for k in collected[0]}
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
