"""Burn-out of 48 smog-chamber cells: mass-action kinetics, linearly implicit two-stage Rosenbrock (ROS2)."""
import math
import time
from dataclasses import dataclass

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(11)


@dataclass(frozen=True)
class Setup:
    species: int = 128
    reactions: int = 320
    cells: int = 48
    steps: int = 1500
    keep_every: int = 5
    tolerance: float = 1e-5
    first_dt: float = 1e-8


class Mechanism:
    """a + b -> p + q with rate constants over twelve decades."""

    def __init__(self, s: Setup):
        n, k = s.species, s.reactions
        self.a, self.b, self.p, self.q = torch.randint(0, n, (4, k))
        self.rate = 10.0 ** (torch.rand(k) * 12 - 6)
        self.net = torch.zeros(k, n)
        ones = torch.ones(k)
        rows = torch.arange(k)
        for index, sign in ((self.a, -1), (self.b, -1), (self.p, 1), (self.q, 1)):
            self.net.index_put_((rows, index), sign * ones, accumulate=True)
        # place j * n + i of a cell's Jacobian gets net[r, i] * d rate_r / d c_j
        place, source, weight = [], [], []
        for r in range(k):
            touched = self.net[r].nonzero().flatten().tolist()
            for slot, j in enumerate((int(self.a[r]), int(self.b[r]))):
                for i in touched:
                    place.append(j * n + i)
                    source.append(slot * k + r)
                    weight.append(float(self.net[r, i]))
        self.place = torch.tensor(place).repeat(s.cells, 1)
        self.source, self.weight = torch.tensor(source), torch.tensor(weight)
        self.n = n
        self.work = torch.empty(s.cells, n * n)
        self.lu = torch.empty(s.cells, n, n).mT
        self.pivots = torch.empty(s.cells, n, dtype=torch.int32)

    def slope(self, c, kt):
        return (kt * c[:, self.a] * c[:, self.b]) @ self.net

    def shifted_jacobian(self, c, kt, factor):
        """I - factor * J for all cells, as (cells, n, n)."""
        v = torch.cat([kt * c[:, self.b], kt * c[:, self.a]], 1).mul_(-factor)
        out = self.work.zero_().scatter_add_(1, self.place, v[:, self.source].mul_(self.weight))
        out = out.view(-1, self.n, self.n).mT
        out.diagonal(dim1=1, dim2=2).add_(1.0)
        return out


def temperature_factor(t, cells):
    """The lamps are dimmed slowly, each cell with a phase of its own."""
    phase = torch.linspace(0, math.pi, cells)
    return 1.0 + 0.3 * torch.cos(2e-3 * t + phase)[:, None]


def rosenbrock(mech, c, kt, dt):
    gamma = 1.0 + 1.0 / math.sqrt(2.0)
    lu, pivots = torch.linalg.lu_factor(mech.shifted_jacobian(c, kt, gamma * dt), out=(mech.lu, mech.pivots))
    k1 = torch.linalg.lu_solve(lu, pivots, mech.slope(c, kt)[..., None]).squeeze(-1)
    right = mech.slope(c + dt * k1, kt) - 2.0 * k1
    k2 = torch.linalg.lu_solve(lu, pivots, right[..., None]).squeeze(-1)
    return c + dt * (1.5 * k1 + 0.5 * k2), 0.5 * dt * (k1 + k2)


@torch.inference_mode()
def main(s: Setup):
    mech = Mechanism(s)
    c = torch.rand(s.cells, s.species) * 1e-2 + 1e-4
    mass = c.sum(1)
    t, dt = 0.0, s.first_dt
    snapshots, times = [c.clone()], [0.0]
    rejected = 0
    tick = time.perf_counter()
    for step in range(1, s.steps + 1):
        kt = mech.rate * temperature_factor(t, s.cells)
        new, error = rosenbrock(mech, c, kt, dt)
        size = float(error.abs().max()) / s.tolerance
        if size <= 1.0:
            t += dt
            c = new.clamp_(min=0.0)
        else:
            rejected += 1
        dt *= min(2.0, max(0.3, 0.9 / math.sqrt(size + 1e-12)))
        dt = min(dt, 5.0)
        if step % s.keep_every == 0:
            snapshots.append(c.clone())
            times.append(t)
        if step % 100 == 0:
            now = time.perf_counter()
            print(f"step {step:5d}  t {t:.3e} s  dt {dt:.2e}  rejected {rejected}  {10 * (now - tick):.1f} ms/step")
            tick = now
    path = torch.stack(snapshots)
    drift = (path[-1].sum(1) / mass - 1).abs().max()
    print(f"{len(path)} snapshots over {times[-1]:.3e} s, mass drift {float(drift):.2e}")
    print("half-lives reached:", int((path[-1] < 0.5 * path[0]).sum()))


if __name__ == "__main__":
    main(Setup())
