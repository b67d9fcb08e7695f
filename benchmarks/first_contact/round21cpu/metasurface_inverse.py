"""
Inverse design of metasurface cells: patterns are optimised by gradient descent through a fixed surrogate of the
Maxwell solver, until their spectrum is the wanted one.
"""
import torch
import torch.nn.functional as F
from torch import nn

PIXELS, WAVELENGTHS = 32, 24


def stage(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1),
        nn.GELU(),
    )


class Surrogate(nn.Module):
    """Pattern (1 x 32 x 32) to transmission at 24 wavelengths."""

    def __init__(self, width=48):
        super().__init__()
        self.features = nn.Sequential(
            stage(1, width, 1), stage(width, width, 2), stage(width, 2 * width, 2), stage(2 * width, 2 * width, 1)
        )
        self.spectrum = nn.Linear(2 * width * 64, WAVELENGTHS)

    def forward(self, pattern):
        return torch.sigmoid(self.spectrum(self.features(pattern).flatten(1)))


def load_surrogate(seed):
    """Stands in for the checkpoint of the surrogate's own training."""
    torch.manual_seed(seed)
    surrogate = Surrogate().to(memory_format=torch.channels_last)
    with torch.no_grad():
        surrogate.spectrum.weight.mul_(6)
    return surrogate.eval()  # flaw: wasted-gradient


class Design(nn.Module):
    """A population of cells, symmetric and smooth, with a slope that grows as they become binary."""

    def __init__(self, cells, g):
        super().__init__()
        self.raw = nn.Parameter(0.5 * torch.randn(cells, 1, PIXELS // 2, PIXELS // 2, generator=g))

    def forward(self, slope):
        quarter = F.avg_pool2d(F.pad(self.raw, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
        half = torch.cat([quarter, quarter.flip(-1)], dim=-1)
        whole = torch.cat([half, half.flip(-2)], dim=-2)
        return torch.sigmoid(slope * whole).to(memory_format=torch.channels_last)


def notch(cells, g):
    """Wanted: full transmission but for one dip."""
    centre = torch.rand(cells, 1, generator=g) * WAVELENGTHS
    at = torch.arange(WAVELENGTHS)
    return 1 - 0.9 * torch.exp(-(((at - centre) / 1.5) ** 2))


def optimise(surrogate, cells=24, steps=450, every=45):
    g = torch.Generator().manual_seed(3)
    design, wanted = Design(cells, g), notch(cells, g)
    optimizer = torch.optim.Adam(design.parameters(), lr=0.05, fused=True)
    error = torch.zeros(())
    for step in range(1, steps + 1):
        slope = 2 + 6 * step / steps
        loss = F.mse_loss(surrogate(design(slope)), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        error += loss.detach()
        if step % every == 0:
            print(f"iteration {step:4d} slope {slope:.2f} spectral error {error.item() / every:.6f}")
            error.zero_()
    return design(8.0).detach()


if __name__ == "__main__":
    cells = optimise(load_surrogate(2))
    print("share of nearly binary pixels", round(((cells < 0.1) | (cells > 0.9)).float().mean().item(), 3))
