"""Waves on a membrane with damping, as compiled leapfrog steps."""
import os
import torch

TINY = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


@torch.compile
def leap(now, before, speed, damping):
    side = now.roll(1, 0) + now.roll(-1, 0) + now.roll(1, 1) + now.roll(-1, 1) - 4 * now
    return (2 - damping) * now - (1 - damping) * before + speed * side


def membrane(n):
    line = torch.linspace(-1, 1, n, device=device)
    speed = 0.2 + 0.1 * torch.exp(-((line[:, None] - 0.3) ** 2 + line[None] ** 2) * 20)
    start = torch.exp(-(line[:, None] ** 2 + (line[None] + 0.2) ** 2) * 400)
    return start, speed


@torch.inference_mode()
def main(n, frames, leaps):
    now, speed = membrane(n)
    before = now.clone()
    energies = []
    for _ in range(frames):
        for _ in range(leaps):
            now, before = leap(now, before, speed, 1e-4), now
        energies.append(now.square().mean())
    energies = torch.stack(energies).tolist()
    print("energy", f"{energies[0]:.3e}", f"{energies[-1]:.3e}")


main(*((64, 3, 2) if TINY else (8192, 700, 40)))
