"""Design a phase mask whose hologram shows a picture in each of several planes."""
import math

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N = 2048 if DEVICE == "cuda" else 32
PLANES = 12 if DEVICE == "cuda" else 2
ITERATIONS = 600 if DEVICE == "cuda" else 3
PITCH = 8e-6
WAVELENGTH = 633e-9


class AngularSpectrum:
    """Free-space propagation of a field on an N x N grid."""

    def __init__(self, n, pitch, wavelength, distances):
        self.n, self.pitch, self.wavelength = n, pitch, wavelength
        self.distances = distances

    def transfer(self):
        f = torch.fft.fftfreq(self.n, self.pitch, dtype=torch.float64, device=DEVICE)  # flaw: constant-rebuilt|float64-on-device
        fy, fx = torch.meshgrid(f, f, indexing="ij")  # flaw: constant-rebuilt|float64-on-device
        kz = (1 / self.wavelength**2 - fx**2 - fy**2).clamp(min=0).sqrt() * 2 * math.pi  # flaw: constant-rebuilt|float64-on-device
        phase = kz * self.distances[:, None, None]  # flaw: constant-rebuilt|float64-on-device
        return torch.polar(torch.ones_like(phase), phase).to(torch.complex64)  # flaw: constant-rebuilt|float64-on-device

    def __call__(self, field):
        spectrum = torch.fft.fft2(field)
        return torch.fft.ifft2(spectrum * self.transfer())  # flaw: constant-rebuilt


def pictures(planes, n):
    """A bright disc in another place in each plane."""
    axis = torch.linspace(-1, 1, n, device=DEVICE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    discs = []
    for k in range(planes):
        angle = 2 * math.pi * k / planes
        discs.append(((x - 0.5 * math.cos(angle)) ** 2 + (y - 0.5 * math.sin(angle)) ** 2 < 0.04).float())
    return torch.stack(discs)


def design():
    torch.manual_seed(0)
    distances = torch.linspace(0.05, 0.15, PLANES, device=DEVICE)
    propagate = AngularSpectrum(N, PITCH, WAVELENGTH, distances)
    target = pictures(PLANES, N)
    target = target / target.mean((1, 2), keepdim=True)
    phase = (0.1 * torch.randn(N, N, device=DEVICE)).requires_grad_()
    optimizer = torch.optim.Adam([phase], lr=0.05, fused=DEVICE == "cuda")
    for i in range(ITERATIONS):
        field = torch.polar(torch.ones_like(phase), phase)
        image = torch.view_as_real(propagate(field)).square().sum(-1)
        loss = torch.nn.functional.mse_loss(image, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"iteration {i}: error {loss.item():.5f}")
    return phase.detach()


if __name__ == "__main__":
    mask = design()
    print("phase spread", mask.std().item())
