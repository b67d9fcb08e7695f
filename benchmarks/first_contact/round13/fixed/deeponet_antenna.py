"""DeepONet: maps an excitation sampled at sensors to a field at query points."""
import functools
import os
import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Run:
    sensors: int = 256
    coords: int = 16
    width: int = 4096
    rank: int = 1024
    functions: int = 8192
    points: int = 8192
    pool: int = 32768
    steps: int = 130
    lr: float = 2e-4
    numerics: str = "high"
    seed: int = 21


RUN = Run()
if os.environ.get("TINY"):
    RUN = replace(RUN, sensors=16, width=64, rank=32, functions=64, points=64, pool=256, steps=60)


def tower(fan_in: int, width: int, fan_out: int) -> nn.Sequential:
    sizes = [fan_in, width, width, width, fan_out]
    layers: list[nn.Module] = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.GELU(approximate="tanh")]
    return nn.Sequential(*layers[:-1])


class DeepONet(nn.Module):
    def __init__(self, run: Run):
        super().__init__()
        self.branch = tower(run.sensors, run.width, run.rank)
        self.trunk = tower(run.coords, run.width, run.rank)
        self.scale = run.rank ** -0.5

    def forward(self, u: Tensor, y: Tensor) -> Tensor:
        return torch.einsum("fr,pr->fp", self.branch(u) * self.scale, self.trunk(y))


def field(u: Tensor, y: Tensor) -> Tensor:
    """Cheap stand-in for the solver: a smooth bilinear functional."""
    k = y.shape[1]
    return torch.tanh(u[:, :k] @ y.t() / k ** 0.5)


class Pool:
    """Everything fits on the card, so a minibatch is two row gathers."""

    def __init__(self, run: Run, device: torch.device):
        make = functools.partial(torch.randn, device=device)
        self.u = make(run.pool, run.sensors)
        self.y = make(run.pool, run.coords)
        self.run, self.device = run, device

    def __iter__(self):
        for _ in range(self.run.steps):
            i = torch.randint(self.run.pool, (self.run.functions,), device=self.device)
            j = torch.randint(self.run.pool, (self.run.points,), device=self.device)
            u, y = self.u[i], self.y[j]
            yield u, y, field(u, y)


def fit(run: Run) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(run.seed)
    torch.set_float32_matmul_precision(run.numerics)
    net = DeepONet(run).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=run.lr, fused=device.type == "cuda")
    trace = torch.zeros(run.steps, device=device)
    begin = time.perf_counter()
    for step, (u, y, target) in enumerate(Pool(run, device)):
        loss = nn.functional.mse_loss(net(u, y), target)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        trace[step] = loss.detach()
    head, tail = trace[:10].mean().item(), trace[-10:].mean().item()
    print(f"mse first {head:.3f} last {tail:.3f}  in {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    fit(RUN)
