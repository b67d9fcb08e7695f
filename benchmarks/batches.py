"""What a loader can deliver at most, by the size of its batches: its workers make nothing.

    python benchmarks/batches.py --out benchmarks/figures/NAME.json

A worker writes a batch into shared memory and the main process maps it, page by page, and copies it to pinned
memory or to the device. That limits large batches whatever the number of workers. ``batch-byte-ns`` is the
time between two batches by their bytes, with several workers; ``batch-byte-alone-ns`` the same with one.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

MEGABYTES = (1, 2, 4, 8, 16, 64)
WORKERS = (1, 4, 12)
#: Samples of a batch, seconds for a reading, and batches that it has at least.
SAMPLES, SECONDS, LEAST = 16, 0.6, 5


class Ready(Dataset[Any]):
    """Samples that are there already; the batch is put together of them."""

    def __init__(self, numbers: int) -> None:
        self.one = torch.ones(numbers // SAMPLES)

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, at: int) -> torch.Tensor:
        return self.one


def between_ns(megabytes: int, workers: int, *, pinned: bool) -> float:
    """Mean time between two batches, in ns, once the queue that the workers filled is empty."""
    cuda = torch.cuda.is_available()
    data = Ready(megabytes << 18)
    batches = iter(DataLoader(data, batch_size=SAMPLES, num_workers=workers, pin_memory=pinned))
    for _ in range(2 * workers + 2):
        next(batches)
    began, count = time.perf_counter(), 0
    while time.perf_counter() < began + SECONDS or count < LEAST:
        batch = next(batches)
        if cuda:
            batch.to("cuda", non_blocking=pinned)
            torch.cuda.synchronize()
        count += 1
    return (time.perf_counter() - began) / count * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, float]] = {"batch-byte-ns": {}, "batch-byte-alone-ns": {}}
    for pinned in (False, True) if torch.cuda.is_available() else (False,):
        for workers in WORKERS:
            for megabytes in MEGABYTES:
                each = between_ns(megabytes, workers, pinned=pinned) / (megabytes << 20)
                name = f"{megabytes} MB, {workers} workers{', pinned' if pinned else ''}"
                found["batch-byte-alone-ns" if workers == 1 else "batch-byte-ns"][name] = round(each, 3)
                print(f"{name}: {each:.2f} ns a byte", flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    kept = {"device": device, "torch": torch.__version__}
    kept["when"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    options.out.write_text(json.dumps({**kept, "figures": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
