"""Low-dose CT denoising on random ellipse phantoms that are drawn anew for every batch."""

import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")
BATCH, SIDE, WIDTH, ITERATIONS, ELLIPSES = (32, 192, 64, 250, 40) if CUDA else (2, 32, 8, 4, 5)


def draw_scene(rng):
    """Parameters of one phantom: a body, organs inside it and small lesions."""
    scene = [(0.0, 0.0, rng.uniform(0.7, 0.9), rng.uniform(0.55, 0.75), rng.uniform(-0.2, 0.2), 1.0)]
    while len(scene) < ELLIPSES:
        x, y = rng.uniform(-0.6, 0.6), rng.uniform(-0.5, 0.5)
        if (x / scene[0][2]) ** 2 + (y / scene[0][3]) ** 2 > 0.8:
            continue
        size = rng.lognormvariate(-2.6, 0.5)
        scene.append((x, y, size, size * rng.uniform(0.5, 1.0), rng.uniform(0, 3.14), rng.gauss(0, 0.2)))
    return scene


def draw_batch(rng):
    scenes = torch.tensor([draw_scene(rng) for _ in range(BATCH)])
    scenes = scenes.pin_memory() if CUDA else scenes
    return scenes.to(device, non_blocking=True)


def rasterise(scenes, grid_x, grid_y):
    """Sum of soft ellipses as a product of two Gaussians' profiles along rotated axes."""
    x, y, a, b, angle, value = scenes.unbind(-1)
    c, s = torch.cos(angle), torch.sin(angle)
    xx = (c / a).square() + (s / b).square()
    yy = (s / a).square() + (c / b).square()
    row = torch.exp(-0.5 * yy[..., None] * (grid_y - y[..., None]) ** 2)
    column = torch.exp(-0.5 * xx[..., None] * (grid_x - x[..., None]) ** 2)
    return torch.einsum("bk,bkh,bkw->bhw", value, row, column).unsqueeze(1)


class Denoiser(nn.Module):
    def __init__(self, w, depth=8):
        super().__init__()
        layers = [nn.Conv2d(1, w, 3, padding=1), nn.ReLU(inplace=True)]
        for _ in range(depth):
            layers += [nn.Conv2d(w, w, 3, padding=1, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers, nn.Conv2d(w, 1, 3, padding=1))

    def forward(self, x):
        return x - self.body(x)


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    axis = torch.linspace(-1, 1, SIDE, device=device)
    net = Denoiser(WIDTH).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    mean_loss = torch.zeros((), device=device)
    meter = 0.0
    for it in range(1, ITERATIONS + 1):
        start = time.perf_counter()
        clean = rasterise(draw_batch(rng), axis, axis)
        noisy = clean + 0.1 * torch.randn_like(clean)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            restored = net(noisy)
        loss = F.mse_loss(restored.float(), clean)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        mean_loss.lerp_(loss.detach(), 0.05)
        if CUDA:  # flaw: synchronize-in-step
            torch.cuda.synchronize()  # flaw: synchronize-in-step
        meter = 0.95 * meter + 0.05 * (time.perf_counter() - start)
        if it % 50 == 0:
            print(f"{it:5d} loss {mean_loss.item():.5f} {1e3 * meter:.1f} ms")


if __name__ == "__main__":
    main()
