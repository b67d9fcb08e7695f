"""Direct-summation N-body integration of a star cluster, forces in a Triton kernel."""
import math

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

cuda = torch.cuda.is_available() and triton is not None
device = "cuda" if cuda else "cpu"

SOFTENING = 0.02
BLOCK_I = 256  # flaw: small-grid
BLOCK_J = 32

if triton is not None:

    @triton.jit
    def gravity_kernel(pos_ptr, mass_ptr, acc_ptr, n, eps2, BI: tl.constexpr, BJ: tl.constexpr):
        i = tl.program_id(0) * BI + tl.arange(0, BI)
        live = i < n
        xi = tl.load(pos_ptr + i, mask=live, other=0.0)[:, None]
        yi = tl.load(pos_ptr + n + i, mask=live, other=0.0)[:, None]
        zi = tl.load(pos_ptr + 2 * n + i, mask=live, other=0.0)[:, None]
        ax = tl.zeros((BI, BJ), dtype=tl.float32)
        ay = tl.zeros((BI, BJ), dtype=tl.float32)
        az = tl.zeros((BI, BJ), dtype=tl.float32)
        for start in range(0, n, BJ):
            j = start + tl.arange(0, BJ)
            inside = j < n
            dx = tl.load(pos_ptr + j, mask=inside, other=0.0)[None, :] - xi
            dy = tl.load(pos_ptr + n + j, mask=inside, other=0.0)[None, :] - yi
            dz = tl.load(pos_ptr + 2 * n + j, mask=inside, other=0.0)[None, :] - zi
            m = tl.load(mass_ptr + j, mask=inside, other=0.0)[None, :]
            inv = tl.rsqrt(dx * dx + dy * dy + dz * dz + eps2)
            w = m * inv * inv * inv
            ax += w * dx
            ay += w * dy
            az += w * dz
        tl.store(acc_ptr + i, tl.sum(ax, 1), mask=live)
        tl.store(acc_ptr + n + i, tl.sum(ay, 1), mask=live)
        tl.store(acc_ptr + 2 * n + i, tl.sum(az, 1), mask=live)


def gravity(pos, mass, acc):
    """pos and acc are (3, n)."""
    n = pos.shape[1]
    if not cuda:
        d = pos[:, None, :] - pos[:, :, None]
        w = mass * (d.square().sum(0) + SOFTENING**2).rsqrt() ** 3
        acc.copy_((d * w).sum(2))
        return acc
    gravity_kernel[(triton.cdiv(n, BLOCK_I),)](pos, mass, acc, n, SOFTENING**2, BLOCK_I, BLOCK_J, num_warps=8)  # flaw: small-grid
    return acc


def plummer(n, gen):
    """Positions and velocities of a Plummer sphere in N-body units."""
    u = torch.rand(n, generator=gen).clamp(1e-4, 0.99)
    radius = (u.pow(-2 / 3) - 1).rsqrt()
    direction = torch.nn.functional.normalize(torch.randn(3, n, generator=gen), dim=0)
    speed = 0.4 * math.sqrt(2.0) * (1 + radius.square()).pow(-0.25)
    heading = torch.nn.functional.normalize(torch.randn(3, n, generator=gen), dim=0)
    return (radius * direction).to(device), (speed * heading).to(device)


@torch.inference_mode()
def main():
    n = 16384 if cuda else 64
    frames, substeps, dt = (320, 20, 5e-4) if cuda else (6, 3, 5e-4)
    pos, vel = plummer(n, torch.Generator().manual_seed(0))
    mass = torch.full((n,), 1.0 / n, device=device)
    acc = gravity(pos, mass, torch.empty_like(pos))
    half_mass = []
    for frame in range(frames):
        for _ in range(substeps):
            vel.add_(acc, alpha=0.5 * dt)
            pos.add_(vel, alpha=dt)
            gravity(pos, mass, acc)
            vel.add_(acc, alpha=0.5 * dt)
        half_mass.append(pos.norm(dim=0).median())
        if (frame + 1) % 80 == 0 or frame + 1 == frames:
            kinetic = 0.5 * (mass * vel.square().sum(0)).sum()
            print(f"frame {frame + 1}: kinetic {kinetic.item():.4f}, half-mass radius {half_mass[-1].item():.4f}")


if __name__ == "__main__":
    main()
