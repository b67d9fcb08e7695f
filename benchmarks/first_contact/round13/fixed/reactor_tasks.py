"""Multi-task surrogate of a reactor: three outputs, gradients balanced by their norms."""
import os
import time

import torch
from torch import nn

tiny = os.environ.get("TINY") == "1"
INPUTS, WIDTH, OUT = (16, 64, 8) if tiny else (512, 4096, 64)
BATCH = 64 if tiny else 4096
WINDOW = 20 if tiny else 220
WINDOWS = 3 if tiny else 8
TASKS = ("pressure", "temperature", "yield")

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
amp = device.type == "cuda"


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(INPUTS, WIDTH), nn.GELU(),
            nn.Linear(WIDTH, WIDTH), nn.GELU(),
            nn.Linear(WIDTH, WIDTH), nn.GELU())
        self.heads = nn.ModuleDict({t: nn.Linear(WIDTH, OUT) for t in TASKS})

    def forward(self, x):
        shared = self.trunk(x)
        return {t: head(shared) for t, head in self.heads.items()}


class NormBalanced:
    """Every task moves the trunk equally far."""

    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.trunk = list(model.trunk.parameters())

    def apply(self, losses):
        mixed = None
        for task, loss in losses.items():
            last = task == TASKS[-1]
            head = list(self.model.heads[task].parameters())
            *shared, gw, gb = torch.autograd.grad(loss, self.trunk + head, retain_graph=not last)
            head[0].grad, head[1].grad = gw, gb
            size = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(shared)))
            torch._foreach_mul_(shared, 1 / (size + 1e-8))
            if mixed is None:
                mixed = shared
            else:
                torch._foreach_add_(mixed, shared)
        for p, g in zip(self.trunk, mixed):
            p.grad = g
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)


class Report:
    """Mean losses over a window of steps."""

    def __init__(self):
        self.window = []

    def add(self, losses):
        self.window.append(torch.stack(list(losses.values())).detach())

    def flush(self, label):
        mean = torch.stack(self.window).mean(0).tolist()
        self.window.clear()
        print(label, " ".join(f"{t} {v:.4f}" for t, v in zip(TASKS, mean)))


def plant_data(n):
    x = torch.randn(n, INPUTS, device=device)
    mix = torch.randn(INPUTS, OUT, device=device) / INPUTS ** 0.5
    z = x @ mix
    return x, {"pressure": z.tanh(), "temperature": z.abs(), "yield": z.sin()}


def main():
    torch.manual_seed(66)
    torch.set_float32_matmul_precision("high")
    x_all, y_all = plant_data(8 * BATCH)
    model = Surrogate().to(device)
    balance = NormBalanced(model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=amp))
    report = Report()
    tic = time.perf_counter()
    for w in range(WINDOWS):
        for _ in range(WINDOW):
            rows = torch.randint(len(x_all), (BATCH,), device=device)
            with torch.autocast(device.type, torch.bfloat16, enabled=amp):
                out = model(x_all[rows])
            losses = {t: nn.functional.mse_loss(out[t].float(), y_all[t][rows]) for t in TASKS}
            balance.apply(losses)
            report.add(losses)
        report.flush(f"window {w}")
    print(f"{time.perf_counter() - tic:.2f} s")


if __name__ == "__main__":
    main()
