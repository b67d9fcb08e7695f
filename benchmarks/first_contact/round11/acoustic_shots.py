"""Acoustic wave propagation in three dimensions with a point source and a line of receivers."""
import argparse
import math

import torch

CUDA = torch.cuda.is_available()


@torch.compile(disable=not CUDA)
def leapfrog(u, previous, courant2):
    """Second order in time and space; the new field replaces the previous one (periodic box)."""
    laplacian = -6.0 * u
    for axis in range(3):
        laplacian = laplacian + torch.roll(u, 1, axis) + torch.roll(u, -1, axis)
    previous.copy_(2.0 * u - previous + courant2 * laplacian)


def ricker(samples, dt, frequency):
    t = torch.arange(samples) * dt - 1.2 / frequency
    a = (math.pi * frequency * t).square()
    return (1.0 - 2.0 * a) * torch.exp(-a)


class Survey:
    def __init__(self, n, dt, device, segment=10, progress=lambda step: None):
        self.n, self.dt, self.device = n, dt, device
        self.segment, self.progress = segment, progress
        depth = torch.linspace(0.0, 1.0, n, device=device)
        speed = 1.5 + 1.5 * depth + 0.2 * torch.sin(12.0 * depth)
        self.courant2 = ((speed * dt * n / 8.0) ** 2)[:, None, None].expand(n, n, n).contiguous()
        line = torch.arange(4, n - 4, max(1, n // 64), device=device)
        self.receivers = (4 * n + n // 2) * n + line  # flat indices at depth 4, centre row

    def shoot(self, steps, frequency=6.0):
        """Traces (steps, receivers) and the last field; runs in segments so that it can report progress."""
        n = self.n
        u = torch.zeros(n, n, n, device=self.device)
        previous = torch.zeros_like(u)
        wavelet = ricker(steps, self.dt, frequency).to(self.device)
        traces = torch.empty(steps, len(self.receivers), device=self.device)
        for first in range(0, steps, self.segment):
            for t in range(first, min(steps, first + self.segment)):
                u[4, n // 2, n // 4] += wavelet[t]
                leapfrog(u, previous, self.courant2)
                u, previous = previous, u
                torch.index_select(u.view(-1), 0, self.receivers, out=traces[t])
            self.progress(first)
        return traces, u


def first_arrivals(traces, dt, share=0.05):
    """Time at which each trace first exceeds a share of its own peak."""
    loud = traces.abs() > share * traces.abs().amax(0)
    return loud.float().argmax(0) * dt


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--n", type=int, default=512 if CUDA else 32)
    ap.add_argument("--steps", type=int, default=600 if CUDA else 60)
    ap.add_argument("--shots", type=int, default=2 if CUDA else 1)
    args = ap.parse_args()
    device = torch.device("cuda" if CUDA else "cpu")
    dt = 0.4 * 8.0 / args.n / 3.3
    with torch.no_grad():
        survey = Survey(args.n, dt, device)
        for shot in range(args.shots):
            traces, field = survey.shoot(args.steps, frequency=args.n * (0.02 + 0.01 * shot))
            arrivals = first_arrivals(traces, dt)
            print(f"shot {shot}: energy {field.square().sum().item():.4e}, "
                  f"loudest sample {traces.abs().max().item():.4f}, "
                  f"arrivals {arrivals.min().item():.4f} .. {arrivals.max().item():.4f}")


if __name__ == "__main__":
    main()
