"""Rolling station quality for a seismic array: demean, clip, energy and peak, then a beam over shifts."""
import os
from dataclasses import dataclass

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

TINY = os.environ.get("TINY") == "1"
USE_KERNEL = triton is not None and torch.cuda.is_available()
DEV = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Array:
    stations: int = 3 if TINY else 16
    samples: int = 1 << 12 if TINY else 1 << 26
    hours: int = 3 if TINY else 1200
    tile: int = 4096
    shares: int = 64
    beams: int = 64


if triton is not None:
    @triton.jit
    def trace_moments(trace, sums, energies, peaks, samples, per_share, TILE: tl.constexpr):
        station = tl.program_id(0)
        share = tl.program_id(1)
        lane = tl.arange(0, TILE)
        total = tl.zeros([TILE], tl.float32)
        energy = tl.zeros([TILE], tl.float32)
        peak = tl.zeros([TILE], tl.float32)
        base = trace + station.to(tl.int64) * samples
        first = share * per_share
        for at in range(first, first + per_share, TILE):
            x = tl.load(base + at + lane, mask=at + lane < samples, other=0.0).to(tl.float32)
            total += x
            energy += x * x
            peak = tl.maximum(peak, tl.abs(x))
        slot = station * tl.num_programs(1) + share
        tl.store(sums + slot, tl.sum(total, 0))
        tl.store(energies + slot, tl.sum(energy, 0))
        tl.store(peaks + slot, tl.max(peak, 0))


class Quality:
    def __init__(self, array: Array):
        self.array = array
        shape = (3, array.stations, array.shares)
        self.partial = torch.zeros(shape, device=DEV)

    def moments(self, trace):
        a = self.array
        if not USE_KERNEL:
            x = trace.float()
            return x.sum(1), x.square().sum(1), x.abs().amax(1)
        per_share = triton.cdiv(triton.cdiv(a.samples, a.shares), a.tile) * a.tile
        grid = (a.stations, a.shares)
        trace_moments[grid](trace, *self.partial, a.samples, per_share, TILE=a.tile, num_warps=8)
        sums, energies, peaks = self.partial
        return sums.sum(1), energies.sum(1), peaks.amax(1)

    def __call__(self, trace):
        total, energy, peak = self.moments(trace)
        mean = total / self.array.samples
        spread = (energy / self.array.samples - mean.square()).clamp_min(1e-6).sqrt()
        return torch.stack([mean, spread, peak / spread])


def beamform(trace, weights):
    """Power of steered beams over the hour: one pass through the tensor cores."""
    beams = weights @ trace
    return torch.linalg.vector_norm(beams, dim=1, dtype=torch.float32)


@torch.inference_mode()
def main():
    array = Array()
    gen = torch.Generator(DEV).manual_seed(17)
    kind = torch.bfloat16 if DEV == "cuda" else torch.float32
    days = [torch.randn(array.stations, array.samples, device=DEV, generator=gen, dtype=kind) for _ in range(3)]
    steer = torch.randn(array.beams, array.stations, device=DEV, generator=gen, dtype=kind)
    quality = Quality(array)
    log = torch.zeros(array.hours, 3, array.stations, device=DEV)
    power = torch.zeros(array.beams, device=DEV)
    block = array.samples // 16
    for hour in range(array.hours):
        trace = days[hour % 3]
        log[hour] = quality(trace)
        at = hour % 16 * block
        power += beamform(trace[:, at:at + block], steer)
    print(f"spread {log[:, 1].mean().item():.4f} kurtosis-like {log[:, 2].mean().item():.3f} beam {power.mean().item() / array.hours:.2f}")


if __name__ == "__main__":
    main()
