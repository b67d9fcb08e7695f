"""
Quantile forecasts of the load of substations.

Three regions come from loaders of their own and take turns; a region's batches are index look-ups in its tensors.
"""
import itertools
import time
from functools import partial

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
REGIONS = {"north": 1.0, "coast": 0.7, "valley": 1.4}
HISTORY, WEATHER, HORIZON = 168, 56, 24


class Region(Dataset):
    def __init__(self, scale: float, count: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        hours = torch.arange(HISTORY + HORIZON)
        start = torch.randint(0, 168, (count, 1), generator=g)
        daily = torch.sin((hours + start) * (2 * torch.pi / 24))
        weekly = ((hours + start) % 168 >= 120).float()
        noise = torch.randn(count, HISTORY + HORIZON, generator=g)
        self.weather = torch.randn(count, WEATHER, generator=g)
        heat = self.weather[:, :8].mean(1, keepdim=True)
        load = daily - 0.5 * weekly + 0.4 * heat + scale * 0.2 * (1.2 + daily) * noise
        self.past, self.future = load[:, :HISTORY].contiguous(), load[:, HISTORY:].contiguous()

    def __len__(self):
        return len(self.past)

    def __getitem__(self, rows):
        return torch.cat([self.past[rows], self.weather[rows]], 1), self.future[rows]


def loader(data, batch, shuffle):
    order = RandomSampler(data) if shuffle else SequentialSampler(data)
    return DataLoader(data, sampler=BatchSampler(order, batch, drop_last=shuffle), batch_size=None)


class Lion(torch.optim.Optimizer):
    """Sign of an interpolated momentum (Chen et al., 2023), for lists of tensors."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            for p in params:
                if not self.state[p]:
                    self.state[p]["momentum"] = torch.zeros_like(p)
            momenta = [self.state[p]["momentum"] for p in params]
            fast, slow = group["betas"]
            direction = torch._foreach_lerp(grads, momenta, fast)
            torch._foreach_sign_(direction)
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, direction, alpha=-group["lr"])
            torch._foreach_lerp_(momenta, grads, 1 - slow)


class QuantileNet(nn.Module):
    def __init__(self, width=640):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(HISTORY + WEATHER, width), nn.ReLU(inplace=True),
            nn.Linear(width, width), nn.ReLU(inplace=True),
            nn.Linear(width, width), nn.ReLU(inplace=True),
        )
        self.heads = nn.ModuleDict({name: nn.Linear(width, HORIZON * len(QUANTILES)) for name in REGIONS})

    def forward(self, x, region):
        return self.heads[region](self.trunk(x)).unflatten(1, (HORIZON, len(QUANTILES)))


class Pinball(nn.Module):
    """Asymmetric absolute error of each quantile, and a penalty where two of them cross."""

    def __init__(self, crossing=0.5):
        super().__init__()
        self.register_buffer("tau", torch.tensor(QUANTILES))
        self.crossing = crossing

    def forward(self, made, real):
        miss = real[..., None] - made
        pinball = torch.maximum(self.tau * miss, (self.tau - 1) * miss).mean()
        crossed = torch.relu(made[..., :-1] - made[..., 1:]).mean()
        return pinball + self.crossing * crossed


@torch.inference_mode()
def coverage(model, loaders):
    inside = {}
    for name, batches in loaders.items():
        hits = []
        for x, real in batches:
            made = model(x, name)
            hits.append(((real >= made[..., 0]) & (real <= made[..., -1])).float().mean())
        inside[name] = float(torch.stack(hits).mean())
    return "  ".join(f"{name} {share:.2f}" for name, share in inside.items())


def round_robin(loaders):
    for group in zip(*loaders.values()):
        yield from zip(loaders, group)


def main():
    torch.manual_seed(12)
    make = partial(Region, count=12_000)
    train = {n: loader(make(s, seed=i), 256, True) for i, (n, s) in enumerate(REGIONS.items())}
    held = {n: loader(Region(s, 1024, seed=50 + i), 512, False) for i, (n, s) in enumerate(REGIONS.items())}
    model, criterion = QuantileNet(), Pinball()
    optimizer = Lion(model.parameters(), lr=1e-4, weight_decay=0.1)
    for epoch in range(6):
        began, running, steps = time.perf_counter(), torch.zeros(()), 0
        for steps, (region, (x, real)) in zip(itertools.count(1), round_robin(train)):
            loss = criterion(model(x, region), real)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        pace = 1000 * (time.perf_counter() - began) / steps
        print(f"epoch {epoch}  loss {float(running) / steps:.4f}  {pace:.1f} ms/step  90 % band covers: {coverage(model, held)}")


if __name__ == "__main__":
    main()
