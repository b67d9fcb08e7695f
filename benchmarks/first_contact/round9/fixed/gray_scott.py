"""Gray-Scott reaction-diffusion on a large periodic grid, with coarse snapshots for a movie."""
import numpy as np
import torch

torch.manual_seed(3)
device = "cuda" if torch.cuda.is_available() else "cpu"
full = device == "cuda"

N = 4096 if full else 64
FRAMES = 320 if full else 6
STEPS_PER_FRAME = 8
SNAPSHOT_EVERY = 40 if full else 3

Du, Dv = 0.16, 0.08
F, K = 0.060, 0.062
dt = 1.0


def laplacian(a):
    return (
        torch.roll(a, 1, 0)
        + torch.roll(a, -1, 0)
        + torch.roll(a, 1, 1)
        + torch.roll(a, -1, 1)
        - 4.0 * a
    )


@torch.compile(disable=not full)
def react(u, v):
    uvv = u * v * v
    du = Du * laplacian(u) - uvv + F * (1.0 - u)
    dv = Dv * laplacian(v) + uvv - (F + K) * v
    return u + dt * du, v + dt * dv


u = torch.ones(N, N, device=device)
v = torch.zeros(N, N, device=device)
for _ in range(24):
    cy, cx = np.random.default_rng(_).integers(8, N - 8, size=2)
    u[cy - 6 : cy + 6, cx - 6 : cx + 6] = 0.5
    v[cy - 6 : cy + 6, cx - 6 : cx + 6] = 0.25
v += 0.01 * torch.rand_like(v)

movie = []
with torch.inference_mode():
    for frame in range(FRAMES):
        for _ in range(STEPS_PER_FRAME):
            u, v = react(u, v)
        if (frame + 1) % SNAPSHOT_EVERY == 0:
            coarse = torch.nn.functional.avg_pool2d(v[None, None], 16 if full else 4)[0, 0]
            movie.append(coarse.cpu().numpy())
            print(f"frame {frame + 1:4d}  v mean {coarse.mean().item():.5f}  max {coarse.max().item():.5f}")

movie = np.stack(movie)
print("movie", movie.shape, "final activity", float(movie[-1].sum()))
