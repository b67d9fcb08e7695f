"""Range-Doppler processing of radar cubes: pulse FFT, noise level per Doppler cell, detections."""
import argparse

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton is not None:
    @triton.jit
    def noise_kernel(magnitude, level, n_range, n_doppler, GATES: tl.constexpr, CELLS: tl.constexpr):
        """Mean power over the range gates: one program per cube and block of Doppler cells."""
        cube = tl.program_id(0)
        cell = tl.program_id(1) * CELLS + tl.arange(0, CELLS)
        base = magnitude + cube.to(tl.int64) * n_range * n_doppler
        total = tl.zeros((CELLS,), dtype=tl.float32)
        known = cell < n_doppler
        for start in range(0, n_range, GATES):
            gate = start + tl.arange(0, GATES)
            place = base + gate[:, None] * n_doppler + cell[None, :]
            value = tl.load(place, mask=(gate < n_range)[:, None] & known[None, :], other=0.0)
            total += tl.sum(value * value, 0)
        tl.store(level + cube * n_doppler + cell, total / n_range, mask=known)


def noise_level(magnitude):
    """magnitude: cubes x range gates x Doppler cells, float32, contiguous."""
    cubes, n_range, n_doppler = magnitude.shape
    if not magnitude.is_cuda:
        return magnitude.square().mean(1)
    level = torch.empty(cubes, n_doppler, device=magnitude.device)
    grid = (cubes, triton.cdiv(n_doppler, 128))
    noise_kernel[grid](magnitude, level, n_range, n_doppler, GATES=16, CELLS=128)
    return level


class Detector:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, pulses):
        """pulses: cubes x range gates x pulses, complex64; detections per cube and range gate."""
        magnitude = torch.fft.fft(pulses, dim=2).abs()
        threshold = (self.factor * noise_level(magnitude)).sqrt()
        return (magnitude > threshold.unsqueeze(1)).sum(2, dtype=torch.int32)


class Antenna:
    """Delivers cubes of complex samples, with a few moving targets."""

    def __init__(self, cubes, gates, pulses, device):
        gen = torch.Generator(device).manual_seed(70)
        shape = (2, cubes, gates, pulses)
        self.cubes = torch.complex(torch.randn(shape, generator=gen, device=device),
                                   torch.randn(shape, generator=gen, device=device))
        n = torch.arange(pulses, device=device)
        tone = torch.exp(2j * torch.pi * n * (pulses // 5) / pulses)
        self.cubes[:, :, gates // 3] += 4 * tone
        self.cubes[:, ::2, gates // 2] += 4 * tone.conj()

    def dwell(self, i):
        return self.cubes[i % 2]


def settings():
    gpu = torch.cuda.is_available()
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--cubes", type=int, default=512 if gpu else 2)
    p.add_argument("--gates", type=int, default=1024 if gpu else 32)
    p.add_argument("--pulses", type=int, default=512 if gpu else 16)
    p.add_argument("--dwells", type=int, default=150 if gpu else 3)
    p.add_argument("--factor", type=float, default=9.0)
    return p.parse_args()


@torch.no_grad()
def main():
    s = settings()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    antenna = Antenna(s.cubes, s.gates, s.pulses, device)
    detector = Detector(s.factor)
    found = torch.zeros(s.cubes, s.gates, dtype=torch.int32, device=device)
    for i in range(s.dwells):
        found += detector(antenna.dwell(i))
    total = found.sum().item()
    print(f"{total / s.dwells / s.cubes:.2f} detections per cube, strongest gate "
          f"{found.sum(0).argmax().item()} of {s.gates}")


if __name__ == "__main__":
    main()
