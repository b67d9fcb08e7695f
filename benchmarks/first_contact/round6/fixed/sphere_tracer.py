"""Sphere tracing of an implicit scene, with soft shadows from the step count."""

import os
import time

import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
WIDTH, HEIGHT, FRAMES, MARCH = (24, 16, 30, 3) if os.environ.get("SMALL") else (1920, 1080, 60, 16)


def smooth_min(a, b, k):
    h = (0.5 + 0.5 * (b - a) / k).clamp(0, 1)
    return b + (a - b) * h - k * h * (1 - h)


def sphere(x, y, z, cx, cy, cz, r):
    return torch.sqrt((x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2) - r


def torus(x, y, z, big, little):
    ring = torch.sqrt(x * x + z * z) - big
    return torch.sqrt(ring * ring + y * y) - little


@torch.compile(disable=not CUDA)
def scene(x, y, z, phase):
    ripple = 0.03 * torch.sin(9 * x + phase) * torch.sin(9 * y) * torch.sin(9 * z)
    balls = smooth_min(sphere(x, y, z, 0.6, 0.2, 3.0, 0.5), sphere(x, y, z, -0.5, 0.1, 3.2, 0.6), 0.2)
    body = smooth_min(balls, torus(x, y + 0.3, z - 3.0, 1.1, 0.25), 0.3)
    return torch.minimum(body + ripple, y + 1.0)


class Camera:
    def __init__(self, width, height):
        ys = torch.linspace(-height / width, height / width, height, device=DEVICE)
        xs = torch.linspace(-1, 1, width, device=DEVICE)
        dy, dx = torch.meshgrid(-ys, xs, indexing="ij")
        norm = torch.rsqrt(dx * dx + dy * dy + 1)
        self.dx, self.dy, self.dz = dx * norm, dy * norm, norm

    def at(self, t):
        return self.dx * t, self.dy * t, self.dz * t


def march(camera, phase):
    t = torch.zeros_like(camera.dx)
    for _ in range(MARCH):
        t += scene(*camera.at(t), phase)
    return t.clamp_(0, 20)


@torch.inference_mode()
def film():
    camera = Camera(WIDTH, HEIGHT)
    exposure = torch.zeros(HEIGHT, WIDTH, device=DEVICE)
    phases = torch.arange(FRAMES, device=DEVICE) * 0.1
    march(camera, phases[0])
    begin = time.perf_counter()
    for phase in phases:
        exposure.lerp_(torch.exp(-0.2 * march(camera, phase)), 0.05)
    print(f"mean exposure {exposure.mean().item():.4f}, {FRAMES / (time.perf_counter() - begin):.1f} frames/s")


if __name__ == "__main__":
    film()
