# Hodgkin-Huxley membranes of a sheet of cells driven by a slowly rotating current.
import math
import os

import torch

torch.set_grad_enabled(False)
TINY = bool(os.environ.get("TINY"))
CELLS = 4_000 if TINY else 600_000
STEPS = 8 if TINY else 240
DT = 0.01


class Sheet:
    g_na, g_k, g_leak = 120.0, 36.0, 0.3
    e_na, e_k, e_leak = 50.0, -77.0, -54.4

    def __init__(self, cells, seed=1):
        g = torch.Generator().manual_seed(seed)
        self.v = -65 + 4 * torch.randn(cells, generator=g)
        self.m = torch.full((cells,), 0.05)
        self.h = torch.full((cells,), 0.6)
        self.n = torch.full((cells,), 0.32)
        self.phase = torch.rand(cells, generator=g) * 2 * math.pi

    def advance(self, drive):
        self.v, self.m, self.h, self.n = membrane(self.v, self.m, self.h, self.n, self.phase, drive)


def membrane(v, m, h, n, phase, drive):  # flaw: unfused-elementwise
    a_m = 0.1 * (v + 40.0) / (1.0 - torch.exp(-(v + 40.0) / 10.0))
    b_m = 4.0 * torch.exp(-(v + 65.0) / 18.0)
    a_h = 0.07 * torch.exp(-(v + 65.0) / 20.0)
    b_h = 1.0 / (1.0 + torch.exp(-(v + 35.0) / 10.0))
    a_n = 0.01 * (v + 55.0) / (1.0 - torch.exp(-(v + 55.0) / 10.0))
    b_n = 0.125 * torch.exp(-(v + 65.0) / 80.0)
    i_na = Sheet.g_na * m * m * m * h * (v - Sheet.e_na)
    i_k = Sheet.g_k * (n * n) * (n * n) * (v - Sheet.e_k)
    i_leak = Sheet.g_leak * (v - Sheet.e_leak)
    current = 8.0 + 4.0 * torch.cos(phase - drive)
    v_next = v + DT * (current - i_na - i_k - i_leak)
    m_next = m + DT * (a_m * (1.0 - m) - b_m * m)
    h_next = h + DT * (a_h * (1.0 - h) - b_h * h)
    n_next = n + DT * (a_n * (1.0 - n) - b_n * n)
    return v_next, m_next, h_next, n_next


sheet = Sheet(CELLS)
drive = torch.zeros(())
step = 0
while step < STEPS:
    drive += 0.02
    sheet.advance(drive)
    step += 1
    if step % (STEPS // 4) == 0:
        print(f"{step * DT:6.2f} ms   mean {sheet.v.mean().item():8.3f} mV   "
              f"open {sheet.m.mean().item():.4f}")
