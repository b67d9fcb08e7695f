"""Drift of sargassum mats on an ocean current, with the whole trail of each mat kept for the beaching map."""
import os
import torch
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
mats, hours, days, cells = (500, 8, 4, 32) if tiny else (1_000_000, 72, 220, 512)


def eddies(g):
    psi = torch.randn(1, 1, cells // 8, cells // 8, generator=g, device=device)
    psi = F.interpolate(psi, size=(cells, cells), mode="bicubic", align_corners=True)
    dy, dx = torch.gradient(psi[0, 0])
    return torch.stack([dy, -dx])[None] * 0.05


def drift(start, current):
    here = start
    trail = here.unsqueeze(0)
    for _ in range(hours):
        push = F.grid_sample(current, here.view(1, 1, -1, 2), align_corners=True)
        here = (here + push[0, :, 0].t()).clamp_(-1, 1)
        trail = torch.vstack([trail, here[None]])  # flaw: cat-in-loop
    return trail


@torch.inference_mode()
def season():
    g = torch.Generator(device).manual_seed(11)
    current = eddies(g)
    position = torch.rand(mats, 2, generator=g, device=device) * 2 - 1
    travelled = torch.zeros((), device=device)
    for _ in range(days):
        trail = drift(position, current)
        travelled += (trail[-1] - trail[0]).abs().mean()
        position = trail[-1]
    print(f"mean drift per day {travelled.item() / days:.5f}")


season()
