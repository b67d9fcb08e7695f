"""Excitable heart tissue: gate variables in every cell, diffusion of the membrane voltage."""
import os
import torch
import torch.nn.functional as F

LITTLE = os.environ.get("SMALL") == "1"
SIZE = 48 if LITTLE else 2048
BEATS = 30 if LITTLE else 80
INNER = 2 if LITTLE else 20
DT = 0.02


def gate(v, a, b, c, d):
    up = a * torch.exp((v + b) / 18.0)
    down = c * torch.exp(-(v + d) / 20.0)
    total = up + down
    return up / total, 1.0 / total


def currents(v, m, h, n):
    m_inf, m_tau = gate(v, 0.9, 35.0, 1.6, 60.0)
    h_inf, h_tau = gate(v, 0.07, 58.0, 1.2, 28.0)
    n_inf, n_tau = gate(v, 0.3, 34.0, 0.13, 44.0)
    m = m_inf + (m - m_inf) * torch.exp(-DT / m_tau)
    h = h_inf + (h - h_inf) * torch.exp(-DT / h_tau)
    n = n_inf + (n - n_inf) * torch.exp(-DT / n_tau)
    sodium = 12.0 * m * m * m * h * (v - 50.0)
    potassium = 3.6 * n * n * n * n * (v + 77.0)
    leak = 0.3 * (v + 54.4)
    return sodium + potassium + leak, m, h, n


def laplacian(v):
    p = F.pad(v[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4.0 * v


@torch.compile
def substep(v, m, h, n):
    ion, m, h, n = currents(v, m, h, n)
    return v + DT * (0.8 * laplacian(v) - ion), m, h, n


class Tissue:
    def __init__(self, size, device):
        self.v = torch.full((size, size), -65.0, device=device)
        self.m = torch.full_like(self.v, 0.05)
        self.h = torch.full_like(self.v, 0.6)
        self.n = torch.full_like(self.v, 0.32)

    def pace(self):
        edge = max(self.v.shape[0] // 16, 1)
        self.v[:, :edge] = 10.0

    def run(self, count):
        for _ in range(count):
            self.v, self.m, self.h, self.n = substep(self.v, self.m, self.h, self.n)

    def summary(self):
        return torch.stack((self.v.mean(), self.v.amax()))


@torch.no_grad()
def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tissue = Tissue(SIZE, device)
    rows = []
    for beat in range(BEATS):
        if beat % 20 == 0:
            tissue.pace()
        tissue.run(INNER)
        rows.append(tissue.summary())
    for mean, top in torch.stack(rows)[::10].tolist():
        print(f"mean {mean:8.3f}   max {top:8.3f}")


if __name__ == "__main__":
    main()
