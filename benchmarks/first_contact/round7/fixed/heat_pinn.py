"""Physics-informed network for the heat equation on a square with a moving source."""

import math

import torch
import torch.nn as nn

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")
torch.set_float32_matmul_precision("high")
INTERIOR, BOUNDARY, WIDTH, DEPTH, EPOCHS = (50_000, 8_000, 512, 5, 120) if CUDA else (64, 16, 16, 3, 4)
DIFFUSIVITY = 0.05


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [3] + [WIDTH] * DEPTH
        self.hidden = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)])
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x, y, t):
        z = torch.cat([x, y, t], 1)
        for layer in self.hidden:
            z = torch.tanh(layer(z))
        return self.out(z)


def gradient(output, variable):
    return torch.autograd.grad(output, variable, torch.ones_like(output), create_graph=True)[0]


def source(x, y, t):
    cx, cy = 0.5 + 0.3 * torch.cos(2 * math.pi * t), 0.5 + 0.3 * torch.sin(2 * math.pi * t)
    return 5 * torch.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 0.01)


def residual(net, x, y, t):
    u = net(x, y, t)
    u_t, u_x, u_y = torch.autograd.grad(u, (t, x, y), torch.ones_like(u), create_graph=True)
    u_xx = gradient(u_x, x)
    u_yy = gradient(u_y, y)
    return u_t - DIFFUSIVITY * (u_xx + u_yy) - source(x, y, t)


def collocation(n):
    points = torch.rand(n, 3, device=device)
    return [p.requires_grad_() for p in points.split(1, dim=1)]


def boundary(n):
    x, y, t = torch.rand(n, 3, device=device).split(1, dim=1)
    side = torch.randint(0, 4, (n, 1), device=device)
    x = torch.where(side == 0, 0.0, torch.where(side == 1, 1.0, x))
    y = torch.where(side == 2, 0.0, torch.where(side == 3, 1.0, y))
    return x, y, t


def initial(n):
    x, y = torch.rand(n, 2, device=device).split(1, dim=1)
    return x, y, torch.zeros_like(x), torch.sin(math.pi * x) * torch.sin(math.pi * y)


def main():
    torch.manual_seed(1234)
    net = Net().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
    for epoch in range(EPOCHS):
        loss_pde = residual(net, *collocation(INTERIOR)).square().mean()
        loss_bc = net(*boundary(BOUNDARY)).square().mean()
        x, y, t, u0 = initial(BOUNDARY)
        loss_ic = (net(x, y, t) - u0).square().mean()
        loss = loss_pde + 10 * loss_bc + 10 * loss_ic
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if epoch % 30 == 0:
            print(f"epoch {epoch}: pde {loss_pde.item():.4f} bc {loss_bc.item():.4f} ic {loss_ic.item():.4f}")


if __name__ == "__main__":
    main()
