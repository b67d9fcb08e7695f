"""Two-dimensional lattice Boltzmann flow (D2Q9, BGK) past a row of cylinders."""
import numpy as np
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
HEIGHT, LENGTH = (2048, 4096) if device == "cuda" else (32, 64)
FRAMES, SUBSTEPS = (150, 20) if device == "cuda" else (2, 2)
VISCOSITY = 0.02
TAU = 3 * VISCOSITY + 0.5

directions = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]

weights = torch.from_numpy(np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)).to(device)  # flaw: float64-on-device
rng = np.random.default_rng(0)
noise = torch.from_numpy(rng.normal(0, 1e-3, (HEIGHT, LENGTH))).to(device)  # flaw: float64-on-device

rows = torch.arange(HEIGHT, device=device)[:, None]
columns = torch.arange(LENGTH, device=device)[None, :]
radius = HEIGHT // 32
solid = torch.zeros(HEIGHT, LENGTH, dtype=torch.bool, device=device)
for k in range(1, 4):
    solid |= (rows - k * HEIGHT // 4) ** 2 + (columns - LENGTH // 6) ** 2 < radius**2


def equilibrium(rho, ux, uy):
    square = 1.5 * (ux * ux + uy * uy)
    populations = []
    for q, (cx, cy) in enumerate(directions):
        cu = 3 * (cx * ux + cy * uy)
        populations.append(weights[q] * rho * (1 + cu + 0.5 * cu * cu - square))
    return torch.stack(populations)


def advance(f):
    rho = f.sum(0)
    ux = sum(cx * f[q] for q, (cx, _) in enumerate(directions)) / rho
    uy = sum(cy * f[q] for q, (_, cy) in enumerate(directions)) / rho
    collided = f + (equilibrium(rho, ux, uy) - f) / TAU
    bounced = torch.stack([f[q] for q in opposite])
    f = torch.where(solid, bounced, collided)
    return torch.stack([torch.roll(f[q], (cy, cx), (0, 1)) for q, (cx, cy) in enumerate(directions)])


if device == "cuda":
    advance = torch.compile(advance)

with torch.inference_mode():
    f = equilibrium(1 + noise, 0.08 + noise, noise)
    drag = []
    for frame in range(FRAMES):
        for _ in range(SUBSTEPS):
            f = advance(f)
        wake = f[:, :, LENGTH // 3]
        drag.append(wake[1] + wake[5] + wake[8] - wake[3] - wake[6] - wake[7])
    profile = torch.stack(drag).mean(0)
    print(f"mean wake momentum {profile.mean().item():.5f}, density {f.sum(0).mean().item():.5f}")
