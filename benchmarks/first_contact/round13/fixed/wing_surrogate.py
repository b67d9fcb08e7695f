"""Wide surrogate for a panel-method solver: flow conditions and shape in, pressure coefficients out."""
import abc
import os

import torch
import torch.nn.functional as F
from torch import nn

tiny = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WIDTH = 64 if tiny else 8192
LAYERS = 2 if tiny else 8
CASES = 16 if tiny else 1024
UPDATES = 6 if tiny else 640
SHAPE, PANELS = (16, 32) if tiny else (64, 1024)


class Fit(abc.ABC):
    """What every surrogate shares: the update, the bookkeeping, the schedule."""

    def __init__(self, net: nn.Module, lr: float):
        self.net = net.to(device)
        self.weights = [p for p in self.net.parameters() if p.requires_grad]
        self.opt = torch.optim.SGD(self.weights, lr=lr, fused=True)
        self.average = torch.zeros((), device=device)

    @abc.abstractmethod
    def objective(self, case): ...

    @abc.abstractmethod
    def cases(self): ...

    def fresh(self):
        self.opt.zero_grad(set_to_none=True)

    def run(self):
        for case in self.cases():
            self.fresh()
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                value = self.objective(case)
            value.backward()
            self.opt.step()
            self.average.lerp_(value.detach(), 0.05)
        return self.average.item()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        return x + F.silu(self.lin(self.norm(x)))


class WingFit(Fit):
    def __init__(self):
        torch.manual_seed(12)
        with device:
            net = nn.Sequential(nn.Linear(SHAPE, WIDTH), *(Residual(WIDTH) for _ in range(LAYERS)), nn.Linear(WIDTH, PANELS))
            self.camber = torch.randn(SHAPE, PANELS) / SHAPE ** 0.5
        super().__init__(net, lr=0.02)
        self.gen = torch.Generator(device).manual_seed(0)

    def cases(self):
        done = 0
        while done < UPDATES:
            yield torch.rand(CASES, SHAPE, device=device, generator=self.gen) * 2 - 1
            done += 1

    def objective(self, shapes):
        with torch.no_grad():
            pressure = torch.tanh(shapes @ self.camber)
        return F.smooth_l1_loss(self.net(shapes), pressure)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    print(f"surrogate error {WingFit().run():.6f}")
