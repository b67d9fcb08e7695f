"""Figures that are timed with plain torch: for ``figures.py``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset

from warpline.attribution.peaks import peaks_of
from warpline.capture.runner.device.peaks import measured
from warpline.wire.run import Facts

Samples = dict[str, dict[str, float]]

#: Parameters of common models: how many tensors of which shape.
MODELS: dict[str, list[tuple[int, tuple[int, ...]]]] = {
    "mlp": [(6, (512, 512)), (6, (512,))],
    "resnet": [(16, (64, 64, 3, 3)), (16, (128, 128, 3, 3)), (80, (128,))],
    "transformer": [(24, (256, 256)), (12, (1024, 256)), (12, (256, 1024)), (100, (256,))],
    "wide": [(4, (2048, 1024)), (4, (1024,))],
}


def host_ns(work: Callable[[], object]) -> float:
    """Of the host alone: what it takes until the work is queued, in the median of nine."""
    times = []
    for at in range(12):
        wait()
        began = time.process_time_ns()
        work()
        if at >= 3:
            times.append(time.process_time_ns() - began)
    return max(1.0, median(times))


def whole_ns(work: Callable[[], object]) -> float:
    """Until the device is done as well, in the median of nine."""
    times = []
    for at in range(12):
        wait()
        began = time.perf_counter_ns()
        work()
        wait()
        if at >= 3:
            times.append(time.perf_counter_ns() - began)
    return median(times)


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def unset(device: str) -> dict[str, float]:
    """Unsetting gradients by filling them, one tensor at a time or all in a few launches."""
    found = {}
    for name, shapes in MODELS.items():
        parameters = [
            nn.Parameter(torch.zeros(shape, device=device)) for n, shape in shapes for _ in range(n)
        ]
        optimizer = torch.optim.SGD(parameters, lr=0.1)

        def filled(optimizer: Any = optimizer, parameters: Any = parameters) -> float:
            for one in parameters:
                one.grad = torch.zeros_like(one)
            return host_ns(lambda: [optimizer.zero_grad(set_to_none=False) for _ in range(10)])

        def gone(optimizer: Any = optimizer) -> float:
            optimizer.zero_grad()
            return host_ns(lambda: [optimizer.zero_grad() for _ in range(10)])

        found[name] = gone() / filled()
    return found


def made_on_device() -> dict[str, float]:
    """Random numbers and constants of several sizes, made there by made here and copied."""
    found = {}
    for size in (1 << 10, 1 << 16, 1 << 20, 1 << 23):
        for name in ("randn", "rand", "zeros", "arange"):
            make = getattr(torch, name)
            there = whole_ns(lambda make=make, size=size: make(size, device="cuda"))
            here = whole_ns(lambda make=make, size=size: make(size).to("cuda"))
            found[f"{name} {size}"] = there / here
    return found


def reached() -> Samples:
    """Rates of this device by its data sheet's; {} where that is not known."""
    name = torch.cuda.get_device_name()
    sheet = peaks_of(name, Facts())
    if sheet is None:
        return {}
    best = {"fp32": sheet.fp32, "tf32": sheet.tf32, "bf16": sheet.half, "bytes_per_s": sheet.bytes_per_s}
    found: Samples = {}
    for again in range(3):
        for key, value in measured(torch, "cuda").items():
            figure = "reached-bandwidth" if key == "bytes_per_s" else f"reached-{key}"
            if peak := best.get(key):
                found.setdefault(figure, {})[f"{name}, {again + 1}"] = value / peak
    # The same units as bfloat16's, at the same rate on every device that has both.
    left = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    took = min(whole_ns(lambda: left @ left) for _ in range(3))
    found["reached-fp16"] = {name: 2 * 8192**3 / took * 1e9 / sheet.half}
    return found


class Made(Dataset[Any]):
    """Samples that take so many passes over so many numbers to make."""

    def __init__(self, passes: int, numbers: int, pieces: int) -> None:
        self.passes, self.numbers, self.pieces = passes, numbers, pieces

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, at: int) -> tuple[torch.Tensor, ...]:
        one = torch.full((self.numbers,), float(at))
        for _ in range(self.passes):
            one = torch.sin(one)
        return tuple(one + piece for piece in range(self.pieces))


def batches_taken() -> dict[str, float]:
    """What the main process spends on a batch of a worker's that is ready, by what making it takes.

    Of batches that take long to make: for others what a batch takes at least (``batch-take-ns``) is more.
    """
    found = {}
    for passes, numbers, pieces in ((300, 50_000, 1), (100, 100_000, 2), (100, 200_000, 1), (30, 400_000, 2)):
        dataset = Made(passes, numbers, pieces)
        alone = iter(DataLoader(dataset, batch_size=4))
        making = host_ns(lambda alone=alone: next(alone))
        helped = iter(DataLoader(dataset, batch_size=4, num_workers=1))
        times = []
        for at in range(12):
            time.sleep(3e-9 * making + 0.01)
            began = time.process_time_ns()
            next(helped)
            if at >= 3:
                times.append(time.process_time_ns() - began)
        found[f"{passes} passes over {numbers}, {pieces} tensors"] = median(times) / making
    return found


def batches_indexed() -> dict[str, float]:
    """What one index for a batch of rows costs the process, as a share of building it row by row."""
    found = {}
    for numbers, size in ((16, 32), (64, 32), (64, 256), (1024, 64)):
        rows = TensorDataset(torch.randn(8192, numbers), torch.arange(8192))
        whole = BatchSampler(RandomSampler(rows), size, False)
        one = DataLoader(rows, size, shuffle=True)
        other = DataLoader(rows, batch_size=None, sampler=whole)
        times = [median(epoch_ns(loader) for _ in range(5)) for loader in (one, other)]
        found[f"{size} rows of {numbers}"] = times[1] / times[0]
    return found


def epoch_ns(loader: DataLoader[Any]) -> int:
    """Processor time of the process for an epoch of batches."""
    began = time.process_time_ns()
    for _ in loader:
        pass
    return time.process_time_ns() - began
