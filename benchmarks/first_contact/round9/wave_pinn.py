"""Physics-informed network for the 2-D wave equation u_tt = c(x)^2 (u_xx + u_yy)."""
import math

import torch
from torch import nn
from torch.autograd import grad

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")
torch.set_float32_matmul_precision("highest")  # flaw: fp32-matmul
torch.manual_seed(1234)

HIDDEN = 1024 if CUDA else 32
DEPTH = 5 if CUDA else 2
COLLOCATION = 8192 if CUDA else 64
INITIAL = 4096 if CUDA else 32
ITERATIONS = 150 if CUDA else 5


class FourierFeatures(nn.Module):
    def __init__(self, dim_in, count, scale=2.0):
        super().__init__()
        self.register_buffer("freq", torch.randn(dim_in, count) * scale)

    def forward(self, x):
        phase = x @ self.freq
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class WaveField(nn.Module):
    def __init__(self, hidden, depth):
        super().__init__()
        layers = [FourierFeatures(3, hidden // 2)]
        for _ in range(depth):
            layers += [nn.Linear(hidden, hidden), nn.Tanh()]
        layers += [nn.Linear(hidden, 1)]
        self.net = nn.Sequential(*layers)
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.net(x)  # flaw: fp32-matmul


def speed(xy):
    return 1.0 + 0.3 * torch.sin(2 * math.pi * xy[:, :1]) * torch.sin(2 * math.pi * xy[:, 1:2])


def residual(model, pts):
    pts = pts.requires_grad_(True)
    u = model(pts)
    du = grad(u.sum(), pts, create_graph=True)[0]
    uxx = grad(du[:, 0].sum(), pts, create_graph=True)[0][:, 0:1]
    uyy = grad(du[:, 1].sum(), pts, create_graph=True)[0][:, 1:2]
    utt = grad(du[:, 2].sum(), pts, create_graph=True)[0][:, 2:3]
    return utt - speed(pts.detach()[:, :2]).square() * (uxx + uyy)


def initial_condition(xy):
    return torch.exp(-40.0 * (xy - 0.5).square().sum(-1, keepdim=True))


def main():
    model = WaveField(HIDDEN, DEPTH).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=5e-4, fused=CUDA)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, ITERATIONS)
    for it in range(ITERATIONS):
        interior = torch.rand(COLLOCATION, 3, device=device)
        start = torch.rand(INITIAL, 3, device=device)
        start[:, 2] = 0.0

        loss_pde = residual(model, interior).square().mean()
        loss_ic = (model(start) - initial_condition(start[:, :2])).square().mean()
        loss = loss_pde + 100.0 * loss_ic

        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        if it % 50 == 0:
            print(f"{it:5d} pde {loss_pde.item():.3e} ic {loss_ic.item():.3e}")

    with torch.inference_mode():
        probe = torch.rand(4096, 3, device=device)
        print("field rms", model(probe).square().mean().sqrt().item())


if __name__ == "__main__":
    main()
