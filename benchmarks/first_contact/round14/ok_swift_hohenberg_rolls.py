"""Convection rolls: the Swift-Hohenberg equation by a pseudo-spectral scheme."""
import os
import torch

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
dishes, side, steps, report = (1, 32, 20, 10) if TINY else (32, 2048, 1200, 200)


def propagator(side, dt, drive=0.3):
    k = torch.fft.fftfreq(side, d=1 / side) * (6.28318 / 64)
    half = torch.fft.rfftfreq(side, d=1 / side) * (6.28318 / 64)
    k2 = k[:, None] ** 2 + half[None] ** 2
    return 1 / (1 - dt * (drive - (1 - k2) ** 2))


@torch.inference_mode()
def convect(dt=0.1):
    torch.manual_seed(20)
    soften = propagator(side, dt).to(DEV)
    u = torch.randn(dishes, side, side, device=DEV) * 0.1
    for step in range(1, steps + 1):
        bent = torch.addcmul(u, u * u, u, value=-dt)
        u = torch.fft.irfft2(torch.fft.rfft2(bent).mul_(soften), s=(side, side))
        if step % report == 0:
            print(step, f"{u.std().item():.4f}")


convect()
