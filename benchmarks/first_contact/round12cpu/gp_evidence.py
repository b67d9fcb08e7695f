"""Marginal likelihood of a Gaussian process, maximised over its hyperparameters.

The kernel matrix has a condition number near 1e12, so everything here is in double precision:
in single precision the Cholesky factorisation fails at the first step.
"""
import math

import torch

torch.set_default_dtype(torch.float64)
N_STEPS = 450


def data(n):
    gen = torch.Generator().manual_seed(0)
    x = torch.sort(torch.rand(n, generator=gen) * 10).values
    y = torch.sin(x) + 0.3 * torch.sin(4 * x) + 1e-5 * torch.randn(n, generator=gen)
    return x, y - y.mean()


class ExactGP(torch.nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.raw = torch.nn.Parameter(torch.tensor([0.3, 0.0, -11.5]))
        self.register_buffer("gap2", (x[:, None] - x[None, :]).square())
        self.register_buffer("y", y[:, None])

    def neg_log_likelihood(self):
        length, scale, noise = self.raw.exp()
        k = scale * torch.exp(-0.5 * self.gap2 / length.square())
        k = k + torch.diag(noise.square().expand(len(k)) + 1e-10)
        chol = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(self.y, chol)
        return 0.5 * (self.y * alpha).sum() + chol.diagonal().log().sum() + 0.5 * len(k) * math.log(2 * math.pi)


gp = ExactGP(*data(220))
opt = torch.optim.Adam(gp.parameters(), lr=0.01)
best = math.inf
for step in range(N_STEPS):
    opt.zero_grad()
    nll = gp.neg_log_likelihood()
    nll.backward()
    opt.step()
    if step % 150 == 149:
        best = min(best, nll.item())
        print(f"step {step + 1}: nll {best:.3f}, hyperparameters {[round(v, 4) for v in gp.raw.exp().tolist()]}")
