"""Acoustic wave simulation: wave fields of many shots, kept for migration."""
import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
NZ, NX = (768, 1024) if CUDA else (24, 32)
SHOTS = 300 if CUDA else 2
SNAPSHOTS = 72 if CUDA else 4
SUBSTEPS = 8 if CUDA else 2
DT, DX = 1e-3, 10.0


def layered_velocity():
    depth = torch.arange(NZ, device=DEVICE)[:, None].expand(NZ, NX)
    dip = torch.arange(NX, device=DEVICE)[None] * 0.1
    return 1500 + 350 * ((depth + dip) // (NZ // 6)).clamp(max=6)


def sponge(width=16):
    z = torch.arange(NZ, device=DEVICE)
    x = torch.arange(NX, device=DEVICE)
    near_z = torch.minimum(z, NZ - 1 - z)[:, None]
    near_x = torch.minimum(x, NX - 1 - x)[None]
    edge = (width - torch.minimum(near_z, near_x)).clamp(min=0)
    return torch.exp(-((0.015 * edge) ** 2))


def laplacian(u):
    out = -5.0 * u
    for axis in (0, 1):
        out = out + 4 / 3 * (torch.roll(u, 1, axis) + torch.roll(u, -1, axis))
        out = out - 1 / 12 * (torch.roll(u, 2, axis) + torch.roll(u, -2, axis))
    return out


def advance(u, previous, factor, damping):
    for _ in range(SUBSTEPS):
        following = (2 * u - previous + factor * laplacian(u)) * damping
        previous, u = u * damping, following
    return u, previous


if CUDA:
    advance = torch.compile(advance)


def simulate_shot(position, factor, damping):
    """Snapshots of the pressure, (SNAPSHOTS, NZ, NX)."""
    z = torch.arange(NZ, device=DEVICE)[:, None]
    x = torch.arange(NX, device=DEVICE)[None]
    u = torch.exp(-((z - 20) ** 2 + (x - position) ** 2) / 18.0)
    previous = u.clone()
    history = torch.empty(SNAPSHOTS, NZ, NX, device=DEVICE)
    history[0] = u
    for k in range(1, SNAPSHOTS):
        u, previous = advance(u, previous, factor, damping)
        history[k] = u
    return history


@torch.inference_mode()
def main():
    factor = (layered_velocity() * DT / DX) ** 2
    damping = sponge()
    illumination = torch.zeros(NZ, NX, device=DEVICE)
    for shot in range(SHOTS):
        position = NX * (shot + 1) // (SHOTS + 1)
        history = simulate_shot(position, factor, damping)
        illumination += torch.linalg.vector_norm(history, dim=0)
    print(f"illumination: mean {illumination.mean().item():.4f}, largest {illumination.max().item():.4f}")


if __name__ == "__main__":
    main()
