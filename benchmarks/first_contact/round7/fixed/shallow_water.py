import torch
import torch.nn.functional as F

# Shallow water on a plane, Lax-Friedrichs; several dam breaks, each with its film of heights.

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")
N, FRAMES, SUBSTEPS, SCENARIOS = (4096, 40, 12, 5) if CUDA else (64, 5, 3, 2)
G, DX = 9.81, 1.0
DT = 0.01


def fluxes(h, hu, hv):
    u, v = hu / h, hv / h
    pressure = 0.5 * G * h * h
    return (hu, hu * u + pressure, hu * v), (hv, hv * u, hv * v + pressure)


@torch.compile(disable=not CUDA)
def advance(h, hu, hv):
    fx, fy = fluxes(h, hu, hv)
    out = []
    for q, f, g in zip((h, hu, hv), fx, fy, strict=True):
        q = F.pad(q[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        f = F.pad(f[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        g = F.pad(g[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        mean = 0.25 * (q[2:, 1:-1] + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2])
        slope = (f[1:-1, 2:] - f[1:-1, :-2]) + (g[2:, 1:-1] - g[:-2, 1:-1])
        out.append(mean - 0.5 * DT / DX * slope)
    return out


def dam(height, radius):
    axis = torch.arange(N, device=device, dtype=torch.float32) - N / 2
    inside = axis[:, None] ** 2 + axis[None, :] ** 2 < radius**2
    return torch.where(inside, height, 1.0)


def simulate(height, radius):
    h = dam(height, radius)
    hu, hv = torch.zeros_like(h), torch.zeros_like(h)
    film = torch.empty(FRAMES + 1, N, N, device=device)
    film[0] = h
    for frame in range(FRAMES):
        for _ in range(SUBSTEPS):
            h, hu, hv = advance(h, hu, hv)
        film[frame + 1] = h
    return film


with torch.inference_mode():
    for scenario in range(SCENARIOS):
        film = simulate(2.0 + 0.5 * scenario, N * 0.05 * (scenario + 1))
        change = (film[-1] - film[0]).abs().mean()
        crest = film.amax(dim=(1, 2))
        print(f"scenario {scenario}: mean change {change.item():.5f}, crest {crest[-1].item():.4f}, frames {len(film)}")
        del film
