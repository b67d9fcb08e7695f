"""Operator network for the deflection of a loaded plate: loads in, deflection on a grid of points out."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn


@dataclass
class PlateProblem:
    grid: int = 24
    modes: int = 5
    loads: int = 2000
    seed: int = 130

    def build(self) -> tuple[Tensor, Tensor, Tensor]:
        """Navier's series for a simply supported plate with random loads."""
        gen = torch.Generator().manual_seed(self.seed)
        axis = torch.linspace(0, 1, self.grid)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        points = torch.stack([x.flatten(), y.flatten()], dim=1)
        m = torch.arange(1, self.modes + 1, dtype=torch.float32)
        shapes = torch.einsum(
            "pm,pn->pmn", torch.sin(math.pi * points[:, :1] * m), torch.sin(math.pi * points[:, 1:] * m)
        ).flatten(1)
        stiffness = (m[:, None] ** 2 + m[None] ** 2).square().flatten()
        amplitude = torch.randn(self.loads, self.modes**2, generator=gen)
        load = amplitude @ shapes.T
        deflection = (amplitude / stiffness) @ shapes.T
        return points, load / load.std(), deflection / deflection.std()


def mlp(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


class OperatorNet(nn.Module):
    def __init__(self, sensors: int, rank: int):
        super().__init__()
        self.branch = mlp([sensors, 384, 384, rank], nn.ReLU)
        self.trunk = mlp([2, 128, 128, rank], nn.Tanh)
        self.level = nn.Parameter(torch.zeros(()))

    def forward(self, load: Tensor, points: Tensor) -> Tensor:
        return torch.addmm(self.level, self.branch(load), self.trunk(points).T)


def relative_error(guess: Tensor, truth: Tensor) -> float:
    return ((guess - truth).norm() / truth.norm()).item()


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(131)
    problem = PlateProblem()
    print(asdict(problem))
    points, load, deflection = problem.build()
    held_out = slice(problem.loads - 200, problem.loads)
    net = OperatorNet(load.shape[1], rank=96)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1100)
    gen = torch.Generator().manual_seed(132)
    for update in range(1, 1101):
        rows = torch.randint(problem.loads - 200, (192,), generator=gen)
        loss = nn.functional.mse_loss(net(load[rows], points), deflection[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if update % 275 == 0:
            with torch.no_grad():
                error = relative_error(net(load[held_out], points), deflection[held_out])
            print(f"update {update}: loss {loss.item():.5f}, held-out error {error:.4f}")


if __name__ == "__main__":
    main()
