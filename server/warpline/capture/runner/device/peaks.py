"""The device's measured peak rates: matrix products by precision, and a copy. Measured on request, then kept.

For devices without a data sheet in the server. Takes less than half a second, after the capture,
and leaves the script's settings and its random numbers as they are.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

#: Each figure gets this long, and is the best that was seen in it.
EACH_S = 0.06
#: A product that takes this long is not limited by its launch.
LONG_ENOUGH_S = 0.002
SMALLEST, LARGEST = 512, 8192
#: Larger than any cache; at most this share of what is free.
COPY_BYTES, SHARE_OF_FREE = 1 << 28, 1 / 8


def device_peaks(torch: ModuleType, measure: bool, folder: str | None = None) -> dict[str, float]:
    """``Facts.peaks``: operations by precision and ``bytes_per_s``, each per second; {} when not known.

    ``folder``: where they are kept by device and driver, the user's cache folder.
    """
    if not torch.cuda.is_initialized():
        return {}
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    driver = torch._C._cuda_getDriverVersion() if hasattr(torch._C, "_cuda_getDriverVersion") else 0
    key = "%s, %d multiprocessors, driver %s" % (properties.name, properties.multi_processor_count, driver)
    path = os.path.join(folder or _cache(), "peaks.json")
    kept = _read(path)
    if key in kept or not measure:
        return kept.get(key, {})
    try:
        found = measured(torch, "cuda")
    except RuntimeError:  # no memory left, or no such arithmetic
        return {}
    _write(path, {**kept, key: found})
    return found


def measured(torch: ModuleType, device: str) -> dict[str, float]:
    """Operations a second of matrix products by precision, and ``bytes_per_s`` of a copy."""
    found = {}
    generator = torch.Generator(device)
    generator.manual_seed(0)
    with torch.no_grad(), torch.autocast(device, enabled=False):
        for name, dtype, precision in (
            ("fp32", torch.float32, "highest"),
            ("tf32", torch.float32, "high"),
            ("bf16", torch.bfloat16, None),
        ):
            with _precision(torch, precision):
                found[name] = _products(torch, device, dtype, generator)
        found["bytes_per_s"] = _copies(torch, device)
    return found


def _products(torch: ModuleType, device: str, dtype: Any, generator: Any) -> float:
    """Operations per second of square matrix products, as large as it takes to be busy with them."""
    size = SMALLEST
    while True:
        # Not of zeros: a device that has nothing to switch clocks higher than with real numbers.
        a, b = (torch.randn(size, size, device=device, generator=generator).to(dtype) for _ in range(2))
        out = torch.empty(size, size, device=device, dtype=dtype)

        def work(a: Any = a, b: Any = b, out: Any = out) -> None:
            torch.mm(a, b, out=out)

        work()  # chooses its kernel
        if size >= LARGEST or _seconds(torch, device, work) >= LONG_ENOUGH_S:
            return 2 * size**3 / _best(torch, device, work)
        size *= 2


def _copies(torch: ModuleType, device: str) -> float:
    """Bytes per second, read and written."""
    room = torch.cuda.mem_get_info()[0] if device == "cuda" else COPY_BYTES
    size = int(min(COPY_BYTES, room * SHARE_OF_FREE))
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / _best(torch, device, lambda: target.copy_(source))


def _best(torch: ModuleType, device: str, work: Callable[[], object]) -> float:
    """Seconds of the quickest ``work()``."""
    best, until = float("inf"), time.perf_counter() + EACH_S
    while time.perf_counter() < until:
        best = min(best, _seconds(torch, device, work))
    return max(best, 1e-9)


def _seconds(torch: ModuleType, device: str, work: Callable[[], object]) -> float:
    if device != "cuda":
        before = time.perf_counter()
        work()
        return time.perf_counter() - before
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


@contextlib.contextmanager
def _precision(torch: ModuleType, wanted: str | None) -> Iterator[None]:
    """float32 products in ``wanted`` ("highest" or "high"; None: as it is), and as before afterwards."""
    if wanted is None:
        yield
        return
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # the script set the newer ``fp32_precision``: only that may be touched then
        matmul = torch.backends.cuda.matmul
        before, matmul.fp32_precision = matmul.fp32_precision, "tf32" if wanted == "high" else "ieee"
        try:
            yield
        finally:
            matmul.fp32_precision = before
        return
    torch.set_float32_matmul_precision(wanted)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _cache() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "warpline")


def _read(path: str) -> dict[str, dict[str, float]]:
    """Figures by device; {} when there are none or they are not what they should be."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return {
            str(device): {str(name): float(value) for name, value in figures.items()}
            for device, figures in found.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _write(path: str, kept: Any) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        scratch = "%s.%d" % (path, os.getpid())
        with open(scratch, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(scratch, path)
    except OSError:
        pass  # measured again the next time
