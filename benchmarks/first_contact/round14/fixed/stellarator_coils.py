"""A surrogate of the magnetic field of stellarator coils, fitted to random coil sets."""
import os
from dataclasses import dataclass
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


@dataclass
class Plan:
    coils: int = 24 if TINY else 768
    hidden: int = 64 if TINY else 4096
    depth: int = 3 if TINY else 5
    batch: int = 32 if TINY else 4096
    steps: int = 6 if TINY else 240
    products: str = "high"
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


def surrogate(plan):
    sizes = [plan.coils] + [plan.hidden] * plan.depth
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.SiLU(inplace=True)]
    return nn.Sequential(*layers, nn.Linear(plan.hidden, 64)).to(plan.device)


def shots(plan, generator):
    mix = torch.randn(plan.coils, 64, device=plan.device, generator=generator) / plan.coils ** 0.5
    for _ in range(plan.steps):
        currents = torch.randn(plan.batch, plan.coils, device=plan.device, generator=generator)
        yield currents, torch.sin(currents @ mix)


def fit(plan):
    torch.set_float32_matmul_precision(plan.products)
    torch.manual_seed(1)
    net = surrogate(plan)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    seen = []
    for currents, field in shots(plan, torch.Generator(plan.device).manual_seed(2)):
        loss = nn.functional.smooth_l1_loss(net(currents), field)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        seen.append(loss.detach())
    curve = torch.stack(seen).cpu()
    print(f"first {curve[0]:.3f} last {curve[-1]:.3f}")


if __name__ == "__main__":
    fit(Plan())
