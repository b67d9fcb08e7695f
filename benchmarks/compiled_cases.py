"""Functions of which one thing grows, timed as they are and compiled: for ``compiling.py``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

#: Launches that are queued before the device is waited for: its queue holds 1,024.
QUEUED = 600
READINGS = 7
CHAIN, MANY, FEW = (4, 16, 64), (4, 16, 32, 64, 96), (4, 16)
PHASES = ("inference", "forward", "backward")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Work = Callable[[], object]


class Chain(nn.Module):
    """``count`` reductions one behind the other: each is a kernel of its own, or two."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count):
            x = x - x.mean()
        return x


class Parameters(nn.Module):
    """As many parameters as kernels."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.each = nn.ParameterList(torch.ones(64) for _ in range(count))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [one * x for one in self.each]


class Inputs(nn.Module):
    """As many inputs as kernels."""

    def forward(self, *given: torch.Tensor) -> list[torch.Tensor]:
        return [one * 2.0 for one in given]


class Products(nn.Module):
    """``count`` calls of a library, with the same weight."""

    def __init__(self, kind: str, count: int) -> None:
        super().__init__()
        shape = {"convolution": (32, 32, 3, 3), "batched": (16, 64, 64)}.get(kind, (64, 64))
        self.kind, self.count = kind, count
        self.weight = nn.Parameter(torch.randn(shape) / 20)
        self.bias = nn.Parameter(torch.zeros(64))

    def given(self) -> torch.Tensor:
        shape = {"convolution": (8, 32, 16, 16), "batched": (16, 64, 64), "attention": (8, 4, 64, 64)}
        return torch.randn(shape.get(self.kind, (64, 64)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count):
            if self.kind == "product":
                x = torch.mm(x, self.weight)
            elif self.kind == "linear":
                x = F.linear(x, self.weight, self.bias)
            elif self.kind == "batched":
                x = torch.bmm(x, self.weight)
            elif self.kind == "convolution":
                x = F.conv2d(x, self.weight, padding=1)
            else:
                x = F.scaled_dot_product_attention(x, x, x)
        return x


def layered(width: int, layers: int) -> nn.Module:
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(layers)))


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        parts = [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        self.body = nn.Sequential(
            *parts, nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.body(x))


def networks() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.1, batch_first=True, norm_first=True)
    return {
        "perceptron": (layered(256, 8), (128, 256)),
        "residual, small images": (nn.Sequential(*(Residual(32) for _ in range(8))), (32, 32, 16, 16)),
        "residual, larger images": (nn.Sequential(*(Residual(64) for _ in range(8))), (32, 64, 56, 56)),
        "transformer, short": (nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), (8, 64, 256)),
        "transformer, long": (nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), (32, 512, 256)),
    }


def phases(
    function: Callable[..., Any], given: list[torch.Tensor], wanted: list[torch.Tensor]
) -> dict[str, Work]:
    """The calls that are timed. ``backward`` has the forward pass with it."""

    def inference() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            function(*given)

    def forward() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        function(*given)

    def backward() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        found = function(*given)
        results = found if isinstance(found, list) else [found]
        torch.autograd.grad(results, wanted, [torch.ones_like(one) for one in results])

    return {"inference": inference, "forward": forward, "backward": backward}


def read(work: Work) -> dict[str, float]:
    """Host and device time of a call in ns, its kernels, and those of them that Triton made."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(4):  # compiles, records the graph, replays it
        work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    kernels = [one for one in seen.events() if one.device_type == torch.autograd.DeviceType.CUDA]
    calls = max(1, min(200, QUEUED // max(1, len(kernels))))
    host, device = [], []
    for _ in range(READINGS):
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        for _ in range(calls):
            work()
        queued = time.perf_counter_ns() - began
        torch.cuda.synchronize()
        host.append(queued / calls)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(int(queued * 2.5))  # behind a wait that is longer than queueing
        start.record()
        for _ in range(calls):
            work()
        end.record()
        torch.cuda.synchronize()
        device.append(start.elapsed_time(end) * 1e6 / calls)
    return {
        "host_ns": min(host),
        "device_ns": min(device),
        "kernels": len(kernels),
        "triton": sum(one.name.startswith("triton_") for one in kernels),
        "kernel_ns": sum(one.device_time for one in kernels) * 1e3,
    }


Case = tuple[str, int, Callable[[], nn.Module], Callable[[nn.Module], list[torch.Tensor]], tuple[str, ...]]


def cases(family: str) -> Iterator[Case]:
    """``(name, what grows, module, its inputs, modes)``; the mode "" is torch.compile's default."""
    both = ("", "reduce-overhead")
    if family.startswith("chain"):
        size = int(family.split()[1])
        for count in CHAIN:
            yield family, count, lambda count=count: Chain(count), lambda _: [torch.randn(size)], both
    elif family == "parameters":
        for count in MANY:
            yield family, count, lambda count=count: Parameters(count), lambda _: [torch.randn(1)], both
    elif family == "inputs":
        for count in MANY:
            made = [torch.randn(64) for _ in range(count)]
            yield family, count, Inputs, lambda _, made=made: made, both
    elif family in networks():
        module, shape = networks()[family]
        yield family, 0, lambda: module, lambda _: [torch.randn(shape)], both
    else:
        for count in FEW:
            yield (
                *(family, count, lambda count=count: Products(family, count)),
                *(lambda module: [module.given()], ("", "reduce-overhead") if family == "product" else ("",)),
            )


def one_family(family: str, out: Path) -> None:
    rows: list[dict[str, Any]] = []
    for name, count, make, inputs, modes in cases(family):
        torch.manual_seed(0)
        module = make().to(DEVICE)
        given = [one.to(DEVICE).requires_grad_() for one in inputs(module)]
        every = [*given, *(one for one in module.parameters() if one.requires_grad)]
        for mode in (None, *modes):
            torch._dynamo.reset()
            function = module if mode is None else torch.compile(module, mode=mode or None)
            row: dict[str, Any] = {"family": name, "count": count, "mode": mode, "parameters": len(every)}
            try:
                wanted = differentiated(module, given, every)
                for phase, work in phases(function, given, wanted).items():
                    row[phase] = read(work)
            except Exception as error:  # noqa: BLE001 - one that fails costs only itself
                row["error"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
            rows.append(row)
            out.write_text(json.dumps(rows))


def differentiated(
    module: nn.Module, given: list[torch.Tensor], every: list[torch.Tensor]
) -> list[torch.Tensor]:
    """Those of ``every`` that the result depends on: a product without a bias has one that is not used."""
    found = module(*given)
    total = sum(each.sum() for each in (found if isinstance(found, list) else [found]))
    gradients = torch.autograd.grad(total, every, allow_unused=True)
    return [one for one, gradient in zip(every, gradients, strict=True) if gradient is not None]


#: Batch norms of the networks in which nothing else is compiled: what is elementwise merges with them.
NORMS = {"residual, small images": 16, "residual, larger images": 16}
CHAINS = ("chain 1024", "chain 65536")
PRODUCTS = ("product", "linear", "batched", "convolution", "attention")
FAMILIES = (*CHAINS, "parameters", "inputs", *PRODUCTS, *networks())
