"""Depth of crevasses from radar swaths: an encoder and decoder with skips, and an average of its weights."""
import dataclasses
import os
import typing as t

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Config:
    swaths: int = 2048
    side: int = 256
    looks: int = 8
    base: int = 64
    batch: int = 48
    steps: int = 2000
    report: int = 100
    lr: float = 5e-4
    average: float = 0.999
    seed: int = 909

    @classmethod
    def from_environment(cls):
        if os.environ.get("TINY") == "1":
            return cls(swaths=32, side=32, base=8, batch=4, steps=40, report=10)
        return cls()


def block(i: int, o: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False),
        nn.BatchNorm2d(o),
        nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1, bias=False),
        nn.BatchNorm2d(o),
        nn.ReLU(inplace=True),
    )


class DepthNet(nn.Module):
    def __init__(self, looks: int, base: int):
        super().__init__()
        widths = [base, 2 * base, 4 * base, 8 * base]
        self.down = nn.ModuleList(block(i, o) for i, o in zip([looks, *widths], widths))
        self.up = nn.ModuleList(block(i + o, o) for i, o in zip(widths[:0:-1], widths[-2::-1]))
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Conv2d(base, 8, 1)

    def forward(self, x):
        skips = []
        for number, stage in enumerate(self.down):
            x = stage(self.pool(x) if number else x)
            skips.append(x)
        skips.pop()
        for stage in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = stage(torch.cat((x, skips.pop()), 1))
        return self.out(x)


class WeightAverage:
    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.live = list(model.parameters())
        self.kept = [p.detach().clone() for p in self.live]

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(self.kept, self.live, 1 - self.decay)


def make_swaths(c: Config, device: str) -> t.Tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator(device).manual_seed(c.seed)
    coarse = torch.randn(c.swaths, 8, c.side // 16, c.side // 16, device=device, generator=g)
    depth = F.interpolate(coarse, scale_factor=16.0, mode="nearest").bfloat16()
    echo = depth + 0.5 * torch.randn(depth.shape, device=device, generator=g, dtype=torch.bfloat16)
    last = torch.channels_last
    return echo.contiguous(memory_format=last), depth.contiguous(memory_format=last)


def sampler(c: Config, device: str) -> t.Iterator[torch.Tensor]:
    g = torch.Generator(device).manual_seed(c.seed + 1)
    for _ in range(c.steps):
        yield torch.randint(c.swaths, (c.batch,), device=device, generator=g)


def main() -> None:
    c = Config.from_environment()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(c.seed)
    echo, depth = make_swaths(c, device)
    model = DepthNet(c.looks, c.base).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.lr, fused=True)
    average = WeightAverage(model, c.average)
    total = torch.zeros((), device=device)
    for step, chosen in enumerate(sampler(c, device), 1):
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(echo[chosen].contiguous(memory_format=torch.channels_last))
            loss = F.smooth_l1_loss(guess, depth[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average.update()
        total += loss.detach()
        if step % c.report == 0:
            print(f"[{step}/{c.steps}] depth error {total.item() / c.report:.4f}", flush=True)
            total.zero_()


if __name__ == "__main__":
    main()
