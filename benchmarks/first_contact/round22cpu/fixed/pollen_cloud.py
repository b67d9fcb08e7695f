"""Pollen taxa from confocal surface points."""
import time

import torch
from torch import nn, optim

from pollen_cloud_lib import PollenNet

hp = dict(taxa=16, grains=256, points=512, rows=8, steps=100, lr=1e-3, seed=50)


def grains(taxa, grains, points, seed, **_):
    """Spheres with taxon-specific spines: how many, how long, how flat."""
    rng = torch.Generator().manual_seed(seed)
    kind = torch.randint(taxa, (grains,), generator=rng)
    ball = nn.functional.normalize(torch.randn(grains, points, 3, generator=rng), dim=-1)
    angle = torch.atan2(ball[..., 1], ball[..., 0])
    lobes = (kind % 4 + 2)[:, None]
    spine = 1 + 0.12 * (kind // 4 + 1)[:, None] * torch.cos(lobes * angle) * (1 - ball[..., 2] ** 2)
    cloud = ball * spine[..., None] + 0.01 * torch.randn(grains, points, 3, generator=rng)
    return cloud, kind


def accelerate():
    torch.set_float32_matmul_precision("high")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


device = accelerate()
torch.manual_seed(hp["seed"])
cloud, kind = (t.to(device) for t in grains(**hp))
net = PollenNet(hp["taxa"]).to(device)
adam = optim.Adam(net.parameters(), lr=hp["lr"], fused=True)
lossf = nn.CrossEntropyLoss()
rng = torch.Generator(device).manual_seed(hp["seed"] + 1)

t0, total = time.perf_counter(), torch.zeros((), device=device)
for step in range(1, hp["steps"] + 1):
    pick = torch.randint(hp["grains"], (hp["rows"],), device=device, generator=rng)
    loss = lossf(net(cloud[pick]), kind[pick])
    adam.zero_grad(set_to_none=True)
    loss.backward()
    adam.step()
    total += loss.detach()
    if step % 20 == 0:
        t1 = time.perf_counter()
        print(f"step {step:4d} | loss {total.item() / 20:.5f} | {(t1 - t0) * 50:.1f} ms", flush=True)
        t0 = t1
        total.zero_()
