"""Acoustic wave propagation in a 2-D velocity model, shot after shot, fourth order in space (Triton stencil)."""
import math

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

ON_GPU = torch.cuda.is_available() and triton is not None
device = torch.device("cuda" if ON_GPU else "cpu")

if triton is not None:

    @triton.jit
    def wave_kernel(p, p_old, c2, out, NX, NZ, BLOCK: tl.constexpr):
        x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # flaw: uncoalesced-access
        z = tl.program_id(1)  # flaw: uncoalesced-access
        inside = (x >= 2) & (x < NX - 2) & (z >= 2) & (z < NZ - 2)
        at = x * NZ + z
        centre = tl.load(p + at, mask=inside, other=0.0)
        near = tl.load(p + at - 1, mask=inside, other=0.0) + tl.load(p + at + 1, mask=inside, other=0.0)
        near += tl.load(p + at - NZ, mask=inside, other=0.0) + tl.load(p + at + NZ, mask=inside, other=0.0)
        far = tl.load(p + at - 2, mask=inside, other=0.0) + tl.load(p + at + 2, mask=inside, other=0.0)
        far += tl.load(p + at - 2 * NZ, mask=inside, other=0.0) + tl.load(p + at + 2 * NZ, mask=inside, other=0.0)
        lap = -5.0 * centre + (4.0 / 3.0) * near - (1.0 / 12.0) * far
        old = tl.load(p_old + at, mask=inside, other=0.0)
        v = tl.load(c2 + at, mask=inside, other=0.0)
        tl.store(out + at, 2.0 * centre - old + v * lap, mask=inside)


def propagate(p, p_old, c2, out):
    nx, nz = p.shape
    if p.is_cuda:
        block = 256
        grid = (triton.cdiv(nx, block), nz)  # flaw: uncoalesced-access
        wave_kernel[grid](p, p_old, c2, out, nx, nz, BLOCK=block)
        return
    i = slice(2, -2)
    near = p[i, 1:-3] + p[i, 3:-1] + p[1:-3, i] + p[3:-1, i]
    far = p[i, :-4] + p[i, 4:] + p[:-4, i] + p[4:, i]
    lap = -5.0 * p[i, i] + (4.0 / 3.0) * near - far / 12.0
    out[i, i] = 2.0 * p[i, i] - p_old[i, i] + c2[i, i] * lap


def ricker(n, dt, peak):
    t = torch.arange(n, dtype=torch.float32) * dt - 1.2 / peak
    a = (math.pi * peak * t) ** 2
    return (1 - 2 * a) * torch.exp(-a)


class Model:
    def __init__(self, nx, nz, dx, dt):
        depth = torch.linspace(1500.0, 4200.0, nz, device=device)
        velocity = depth.expand(nx, nz).clone()
        velocity[nx // 3 : nx // 2, nz // 2 :] += 600.0
        self.c2 = (velocity * dt / dx).square()
        self.fields = [torch.zeros(nx, nz, device=device) for _ in range(3)]

    def reset(self):
        for f in self.fields:
            f.zero_()

    def advance(self, amplitude, src):
        old, cur, new = self.fields
        propagate(cur, old, self.c2, new)
        new[src] += amplitude
        self.fields = [cur, new, old]
        return new


def main():
    nx, nz = (6144, 4096) if ON_GPU else (64, 48)
    shots = 4 if ON_GPU else 2
    steps = 1000 if ON_GPU else 40
    record_every = 25 if ON_GPU else 10
    dx, dt = 5.0, 5e-4
    wavelet = ricker(steps, dt, 12.0 if ON_GPU else 60.0).to(device)
    model = Model(nx, nz, dx, dt)
    gather = torch.zeros(shots, steps // record_every, nx, device=device)

    for shot in range(shots):
        model.reset()
        src = (nx * (shot + 1) // (shots + 1), 6)
        for first in range(0, steps, record_every):
            for i in range(first, first + record_every):
                field = model.advance(wavelet[i], src)
            gather[shot, first // record_every] = field[:, 8]
        print(f"shot {shot}: recorded energy {gather[shot].square().sum().item():.4e}")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
