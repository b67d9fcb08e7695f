"""Smoke in a box: advection of density and a pressure solve by conjugate gradients."""
import os
import torch
import torch.nn.functional as F


class Solver:
    def __init__(self, n, device, max_iter, tol=1e-7):
        self.n, self.max_iter, self.tol = n, max_iter, tol
        self.diag = torch.full((n, n), 4.0, device=device)
        self.diag[0], self.diag[-1] = 3.0, 3.0
        self.diag[:, 0] -= 1.0
        self.diag[:, -1] -= 1.0
        self.diag += 1e-3

    def apply(self, p):
        q = self.diag * p
        q[1:].sub_(p[:-1])
        q[:-1].sub_(p[1:])
        q[:, 1:].sub_(p[:, :-1])
        q[:, :-1].sub_(p[:, 1:])
        return q

    def solve(self, b, x):
        r = b - self.apply(x)
        d = r.clone()
        rr = torch.vdot(r.flatten(), r.flatten())
        for k in range(self.max_iter):
            q = self.apply(d)
            alpha = rr / torch.vdot(d.flatten(), q.flatten())
            x.addcmul_(d, alpha)
            r.addcmul_(q, -alpha)
            new = torch.vdot(r.flatten(), r.flatten())
            if k % 20 == 19 and new < self.tol:
                break
            d = torch.addcmul(r, d, new / rr)
            rr = new
        return x


class Smoke:
    def __init__(self, n, device, iters):
        self.n = n
        axis = torch.linspace(-1, 1, n, device=device)
        self.base = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)[None]
        self.u = torch.randn(2, n, n, device=device)
        self.density = torch.rand(1, 1, n, n, device=device)
        self.p = torch.zeros(n, n, device=device)
        self.solver = Solver(n, device, iters)

    def divergence(self):
        dx = F.pad(self.u[0, :, 1:] - self.u[0, :, :-1], (0, 1))
        dy = F.pad(self.u[1, 1:] - self.u[1, :-1], (0, 0, 0, 1))
        return dx + dy

    def tick(self, dt=0.01):
        self.p = self.solver.solve(-self.divergence(), self.p)
        self.u[0, :, 1:].sub_(self.p[:, 1:] - self.p[:, :-1])
        self.u[1, 1:].sub_(self.p[1:] - self.p[:-1])
        back = self.base - dt * self.u.permute(1, 2, 0)[None]
        self.density = F.grid_sample(self.density, back, padding_mode="border", align_corners=True)
        self.u[1].add_(self.density[0, 0], alpha=0.1 * dt)


@torch.inference_mode()
def main(n, ticks, iters):
    torch.manual_seed(31)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    smoke = Smoke(n, device, iters)
    for t in range(ticks):
        smoke.tick()
        if t % 20 == 0:
            print("tick", t, "density", smoke.density.mean().item())


if __name__ == "__main__":
    main(*((48, 30, 10) if os.environ.get("SMALL") == "1" else (1536, 80, 60)))
