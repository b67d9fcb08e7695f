# %% [markdown]
# Learn the decay of a tracer in a river network.  Transport is an implicit step on the network's
# Laplacian (stiff: reaches differ in length by orders of magnitude), the reaction is a small network.

# %%
import time
from contextlib import contextmanager

import torch
from torch import nn

torch.manual_seed(21)
torch.set_float32_matmul_precision("high")
dev = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


# %%
def river(reaches, rng):
    """A random tree of reaches (each flows into an earlier one) as a weighted Laplacian."""
    down = (torch.rand(reaches - 1, generator=rng) * torch.arange(1, reaches)).long()
    up = torch.arange(1, reaches)
    speed = torch.exp(2 * torch.randn(reaches - 1, generator=rng))
    lap = torch.zeros(reaches, reaches)
    lap[up, down] = -speed
    lap = lap + lap.T
    return lap - torch.diag(lap.sum(1))


class Transport(nn.Module):
    """Backward Euler for d/dt u = -L u."""

    def __init__(self, laplacian, dt):
        super().__init__()
        self.dt = dt
        self.register_buffer("laplacian", laplacian)
        self.register_buffer("eye", torch.eye(len(laplacian)))
        self.register_buffer("factor", torch.linalg.cholesky(self.system()), persistent=False)

    def system(self):
        return self.eye + self.dt * self.laplacian

    def forward(self, u):
        return torch.cholesky_solve(u, self.factor)


class Reaction(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1), nn.Softplus())

    def forward(self, u, warmth):
        return self.net(torch.stack([u, warmth.expand_as(u)], dim=-1)).squeeze(-1) * u


class SplitSolver(nn.Module):
    """Strang-like splitting: half a reaction, transport, half a reaction."""

    def __init__(self, transport, reaction):
        super().__init__()
        self.transport, self.reaction = transport, reaction

    def half(self, u, warmth):
        return u - 0.5 * self.transport.dt * self.reaction(u, warmth)

    def forward(self, u, warmth, steps):
        for k in range(steps):
            u = self.half(self.transport(self.half(u, warmth[k])), warmth[k])
        return u


# %%
rng = torch.Generator().manual_seed(22)
REACHES, RELEASES, STEPS = 704, 4, 3
transport = Transport(river(REACHES, rng), dt=0.05).to(dev)
solver = SplitSolver(transport, Reaction().to(dev))
optimizer = torch.optim.Adam(solver.reaction.parameters(), lr=3e-3, fused=True)


def true_decay(u, warmth):
    return 0.8 * torch.sigmoid(warmth) * u / (0.3 + u) * u


@torch.no_grad()
def campaigns(count):
    """Releases at random reaches and what was measured `STEPS` later."""
    truth = SplitSolver(transport, true_decay)
    made = []
    for _ in range(count):
        start = torch.rand(REACHES, RELEASES, generator=rng).pow(6).mul(4).to(dev)
        warmth = torch.randn(STEPS, 1, 1, generator=rng).to(dev)
        made.append((start, warmth, truth(start, warmth, STEPS)))
    return made


@contextmanager
def stopwatch(name, per):
    begin = time.perf_counter()
    yield
    print(f"{name}: {(time.perf_counter() - begin) / per * 1e3:.2f} ms each", flush=True)


# %%
with stopwatch("campaign", 64):
    data = campaigns(64)

PASSES = 11
for sweep in range(PASSES):
    total = torch.zeros((), device=dev)
    with stopwatch(f"sweep {sweep}", len(data)):
        for i in torch.randperm(len(data), generator=rng).tolist():
            start, warmth, seen = data[i]
            loss = nn.functional.mse_loss(solver(start, warmth, STEPS), seen)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
    print(f"    misfit {total.item() / len(data):.6e}")
