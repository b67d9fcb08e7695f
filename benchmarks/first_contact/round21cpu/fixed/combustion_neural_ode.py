"""Learns the source term of a surrogate combustion model by differentiating through its RK4 solver."""
import functools
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

conf = SimpleNamespace(
    species=32,
    hidden=192,
    rows=96,
    solver=SimpleNamespace(steps=4, dt=0.05, replay=False),
    optim=SimpleNamespace(lr=1e-3, iterations=900),
    log_every=90,
    seed=13,
)


def source_term(species, hidden):
    return nn.Sequential(
        nn.Linear(species, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, species),
    )


def rk4(rhs, y, dt):
    k1 = rhs(y)
    k2 = rhs(torch.add(y, k1, alpha=dt / 2))
    k3 = rhs(torch.add(y, k2, alpha=dt / 2))
    k4 = rhs(torch.add(y, k3, alpha=dt))
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def advance_with(solver):
    """The function that makes one time step, as the solver's options want it."""
    if solver.replay:
        return functools.partial(checkpoint, rk4, use_reentrant=False)
    return rk4


def integrate(rhs, y, solver):
    advance = advance_with(solver)
    path = []
    for _ in range(solver.steps):
        y = advance(rhs, y, solver.dt)
        path.append(y)
    return torch.stack(path, dim=1)


class Kinetics:
    """The 'detailed mechanism': a stiff-free linear network with a saturating rate."""

    def __init__(self, species, generator):
        rates = torch.rand(species, species, generator=generator) / species
        self.matrix = rates - torch.diag(rates.sum(0) + 0.5)

    def __call__(self, y):
        return (y @ self.matrix.T).tanh() * 3


def observations(count, generator):
    truth = Kinetics(conf.species, generator)
    fine = SimpleNamespace(steps=conf.solver.steps, dt=conf.solver.dt, replay=False)
    start = torch.rand(count, conf.species, generator=generator) * 2
    with torch.no_grad():
        return start, integrate(truth, start, fine)


def batches(tensors, rows, generator):
    while True:
        order = torch.randperm(len(tensors[0]), generator=generator)
        for part in order.split(rows):
            if len(part) == rows:
                yield [t[part] for t in tensors]


def main():
    torch.manual_seed(conf.seed)
    generator = torch.Generator().manual_seed(conf.seed)
    data = observations(12_288, generator)
    rhs = source_term(conf.species, conf.hidden)
    optimizer = torch.optim.Adam(rhs.parameters(), lr=conf.optim.lr, fused=True)
    feed = batches(data, conf.rows, generator)
    mean = torch.zeros(())
    for iteration in range(1, conf.optim.iterations + 1):
        start, wanted = next(feed)
        loss = F.mse_loss(integrate(rhs, start, conf.solver), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean += loss.detach() / conf.log_every
        if iteration % conf.log_every == 0:
            print(f"iteration {iteration:4d}  path error {mean.item():.3e}", flush=True)
            mean.zero_()


if __name__ == "__main__":
    main()
