"""Sea level at a gauge from the levels of its neighbours (dilated gated convolutions)."""
import functools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

REGISTRY = {}


def register(name):
    def keep(factory):
        REGISTRY[name] = factory
        return factory

    return keep


def recomputed(forward):
    """For forward passes of modules: keeps the inputs only, if the module says so."""

    @functools.wraps(forward)
    def run(self, *inputs):
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(functools.partial(forward, self), *inputs, use_reentrant=False)  # flaw: needless-checkpointing
        return forward(self, *inputs)

    return run


@register("gated")
class Gated(nn.Module):
    def __init__(self, width, reach, recompute):
        super().__init__()
        self.recompute = recompute
        self.inner = nn.Conv1d(width, 2 * width, 3, dilation=reach, padding=reach)
        self.outer = nn.Conv1d(width, width, 1)

    @recomputed
    def forward(self, x):
        return x + self.outer(F.glu(self.inner(x), dim=1))


@register("gauge")
class Gauge(nn.Module):
    def __init__(self, gauges, width, reaches, block, recompute):
        super().__init__()
        self.enter = nn.Conv1d(gauges, width, 1)
        self.blocks = nn.ModuleList(REGISTRY[block](width, reach, recompute) for reach in reaches)
        self.leave = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.leave(x).squeeze(1)


RECIPE = {
    "model": {
        "name": "gauge",
        "gauges": 12,
        "width": 64,
        "reaches": [1, 2, 4, 8, 16],
        "block": "gated",
        "recompute": True,  # flaw: needless-checkpointing
    },
    "data": {"gauges": 12, "hours": 20000, "window": 256},
    "training": {"steps": 240, "batch": 16, "lr": 1e-3, "seed": 8},
}


def levels(gauges, hours, seed):
    gen = torch.Generator().manual_seed(seed)
    time = torch.arange(hours, dtype=torch.float32)
    periods = torch.tensor([12.42, 12.0, 25.82, 23.93])
    phases = 6.28 * torch.rand(gauges + 1, 4, 1, generator=gen)
    sizes = torch.rand(gauges + 1, 4, 1, generator=gen)
    tides = (sizes * torch.sin(6.28319 * time / periods[:, None] + phases)).sum(1)
    surge = torch.randn(hours, generator=gen).cumsum(0) * 0.02
    return tides + surge + 0.05 * torch.randn(gauges + 1, hours, generator=gen)


def sampler(table, window, batch, gen):
    """Random windows, as one look-up in a view of them all."""
    windows = table.unfold(1, window, 1).transpose(0, 1)
    while True:
        piece = windows[torch.randint(len(windows), (batch,), generator=gen)]
        yield piece[:, 1:], piece[:, 0]


def main(recipe=RECIPE):
    training, data = recipe["training"], recipe["data"]
    torch.manual_seed(training["seed"])
    gen = torch.Generator().manual_seed(training["seed"])
    spec = dict(recipe["model"])
    model = REGISTRY[spec.pop("name")](**spec)
    optimizer = torch.optim.AdamW(model.parameters(), lr=training["lr"], fused=True)
    table = levels(data["gauges"], data["hours"], training["seed"])
    batches = sampler(table, data["window"], training["batch"], gen)

    for step in range(1, training["steps"] + 1):
        inputs, wanted = next(batches)
        loss = F.smooth_l1_loss(model(inputs), wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:4d}  loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
