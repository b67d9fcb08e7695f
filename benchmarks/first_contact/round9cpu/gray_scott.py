"""Gray-Scott reaction-diffusion; keeps the whole film and its spectrum."""

import torch
import torch.nn.functional as F

SIZE = 256
FRAMES = 320
SUBSTEPS = 3
DU, DV, FEED, KILL = 0.16, 0.08, 0.035, 0.060


def laplace_kernel():
    k = torch.tensor([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]])
    return k.expand(2, 1, 3, 3).contiguous()


def seed_fields(generator):
    uv = torch.zeros(1, 2, SIZE, SIZE)
    uv[:, 0] = 1.0
    for y, x in torch.randint(0, SIZE - 12, (30, 2), generator=generator).tolist():
        uv[:, 0, y : y + 12, x : x + 12] = 0.5
        uv[:, 1, y : y + 12, x : x + 12] = 0.25
    return uv


def advance(uv, kernel, rate):
    padded = F.pad(uv, (1, 1, 1, 1), mode="circular")
    spread = F.conv2d(padded, kernel, groups=2).mul_(rate)
    u, v = uv[:, 0], uv[:, 1]
    reaction = u * v * v
    spread[:, 0].sub_(reaction).add_(1 - u, alpha=FEED)
    spread[:, 1].add_(reaction).sub_(v, alpha=FEED + KILL)
    return uv.add_(spread)


@torch.inference_mode()
def simulate():
    generator = torch.Generator().manual_seed(4)
    kernel = laplace_kernel()
    rate = torch.tensor([DU, DV]).view(1, 2, 1, 1)
    uv = seed_fields(generator)
    film = uv[:, 1].clone()  # flaw: cat-in-loop
    for frame in range(1, FRAMES + 1):
        for _ in range(SUBSTEPS):
            uv = advance(uv, kernel, rate)
        film = torch.cat((film, uv[:, 1]))  # flaw: cat-in-loop
        if frame % 50 == 0:
            print(f"frame {frame}: mean v {uv[0, 1].mean().item():.5f}")
    return film


def spectrum(film):
    last = film[-1] - film[-1].mean()
    power = torch.fft.rfft2(last).abs().square()
    return power[: SIZE // 2].sum(1)


if __name__ == "__main__":
    film = simulate()
    peak = spectrum(film).argmax().item()
    print(tuple(film.shape), "dominant wave number", peak)
