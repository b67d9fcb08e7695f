"""Acoustic wave propagation for a line of seismic shots; writes the receivers' traces."""

import numpy as np
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"
SHOTS, NZ, NX, SAMPLES, SUBSTEPS = (16, 1400, 1600, 240, 20) if on_gpu else (2, 60, 80, 6, 4)
DX, DT = 5.0, 5e-4


def velocity_model():
    """Layers with a dipping reflector and a salt body."""
    z = np.linspace(0, 1, NZ)[:, None]
    x = np.linspace(0, 1, NX)[None, :]
    velocity = 1500 + 1800 * z + 300 * (z > 0.4 + 0.1 * x)
    velocity = np.where((x - 0.5) ** 2 / 0.04 + (z - 0.6) ** 2 / 0.01 < 1, 4500.0, velocity)
    return torch.from_numpy(velocity).float()


def absorbing_taper(width=40):
    def profile(n):
        edge = np.minimum(np.arange(n), np.arange(n)[::-1])
        return np.exp(-((0.015 * np.clip(width - edge, 0, None)) ** 2))

    return torch.from_numpy(profile(NZ)[:, None] * profile(NX)[None, :]).float()


def ricker(count, peak=12.0):
    t = np.arange(count) * DT - 1.0 / peak
    a = (np.pi * peak * t) ** 2
    return (1 - 2 * a) * np.exp(-a)


def advance(now, before, coefficient, taper):
    inner = now[:, 2:-2, 2:-2]
    laplacian = (
        -5.0 * inner
        + (4.0 / 3.0) * (now[:, 1:-3, 2:-2] + now[:, 3:-1, 2:-2] + now[:, 2:-2, 1:-3] + now[:, 2:-2, 3:-1])
        - (1.0 / 12.0) * (now[:, :-4, 2:-2] + now[:, 4:, 2:-2] + now[:, 2:-2, :-4] + now[:, 2:-2, 4:])
    )
    update = 2 * inner - before[:, 2:-2, 2:-2] + coefficient * laplacian
    return torch.nn.functional.pad(update * taper, (2, 2, 2, 2))


if on_gpu:
    advance = torch.compile(advance)


@torch.inference_mode()
def main():
    velocity = velocity_model().to(device)
    coefficient = (velocity * DT / DX).square()[2:-2, 2:-2].contiguous()
    taper = absorbing_taper().to(device)[2:-2, 2:-2].contiguous()
    wavelet = ricker(SAMPLES * SUBSTEPS).tolist()
    now = torch.zeros(SHOTS, NZ, NX, dtype=velocity.dtype, device=device)
    before = torch.zeros_like(now)
    shots = torch.arange(SHOTS, device=device)
    source_x = torch.linspace(0.1 * NX, 0.9 * NX, SHOTS, device=device).long()
    traces = torch.zeros(SAMPLES, SHOTS, NX, dtype=velocity.dtype, device=device)
    for sample in range(SAMPLES):
        for sub in range(SUBSTEPS):
            now, before = advance(now, before, coefficient, taper), now
            now[shots, 8, source_x] += wavelet[sample * SUBSTEPS + sub]
        traces[sample] = now[:, 10]
    print("peak amplitude", traces.abs().max().item(), "energy", traces.square().sum().item())


main()
