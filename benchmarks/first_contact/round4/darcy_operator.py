import os

import torch
import torch.nn as nn

SMALL = os.environ.get("SMALL")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_float32_matmul_precision("high")

GRID = 32 if SMALL else 128
MODES = 6 if SMALL else 48
WIDTH = 8 if SMALL else 64
BATCH = 2 if SMALL else 8


class Spectral(nn.Module):
    """Mixes the channels of the lowest Fourier modes."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        # real storage, so that fused optimizers take it
        self.weight = nn.Parameter(torch.randn(2 * modes, modes, width, width, 2) / width ** 1.5)

    def forward(self, x):
        m = self.modes
        f = torch.fft.rfft2(x, norm="ortho")
        low = torch.cat((f[:, :, :m, :m], f[:, :, -m:, :m]), 2)
        low = torch.einsum("bixy,xyio->boxy", low, torch.view_as_complex(self.weight))
        out = f.new_zeros(f.shape)
        out[:, :, :m, :m] = low[:, :, :m]
        out[:, :, -m:, :m] = low[:, :, m:]
        return torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho")


class Pointwise(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i) / i ** 0.5)
        self.bias = nn.Parameter(torch.zeros(o, 1))

    def forward(self, x):
        y = torch.baddbmm(self.bias, self.weight.expand(len(x), -1, -1), x.flatten(2))
        return y.unflatten(2, x.shape[2:])


class Operator(nn.Module):
    def __init__(self, width, modes, depth=4):
        super().__init__()
        self.lift = Pointwise(4, width)
        self.spectral = nn.ModuleList(Spectral(width, modes) for _ in range(depth))
        self.local = nn.ModuleList(Pointwise(width, width) for _ in range(depth))
        self.act = nn.GELU()
        self.drop = nn.Sequential(Pointwise(width, 128), nn.GELU(), Pointwise(128, 4))

    def forward(self, x):
        x = self.lift(x)
        for s, l in zip(self.spectral, self.local):
            x = self.act(s(x) + l(x))
        return self.drop(x)[:, :1]


def relative_l2(p, y):
    return ((p - y).flatten(1).norm(dim=1) / y.flatten(1).norm(dim=1)).mean()


axis = torch.linspace(0, 1, GRID, device=device)
mesh = torch.stack(torch.meshgrid(axis, axis, indexing="ij")).expand(BATCH * 4, -1, -1, -1)
perm = (torch.randn(BATCH * 4, 1, GRID, GRID, device=device) > 0).float() * 9 + 3
pressure = nn.functional.avg_pool2d(1 / perm, 5, 1, 2)
inputs = torch.cat((perm, mesh, torch.ones_like(perm)), 1)

net = Operator(WIDTH, MODES).to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=device.type == "cuda")
for epoch in range(8 if SMALL else 20):
    for k in range(4):
        opt.zero_grad(set_to_none=False)  # flaw: zeroed-gradients
        part = slice(k * BATCH, (k + 1) * BATCH)
        loss = relative_l2(net(inputs[part]), pressure[part])
        loss.backward()
        opt.step()
    print(epoch, f"{loss.item():.4f}")
