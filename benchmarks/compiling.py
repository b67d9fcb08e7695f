"""What compiled code leaves on the host, and what a CUDA graph costs: plain torch, on a GPU.

    python benchmarks/compiling.py --out benchmarks/figures/NAME.json [--seconds 150] [--jobs 6]

Functions of which only one thing grows (kernels, inputs, parameters, products) are timed as they are,
compiled, and as CUDA graphs: what one more of that thing costs is the difference of two of them. Each phase
(inference, forward, backward) is a sample of its own. The host's time is taken while the device's queue has
room, and the least of several readings counts. ``fit.py`` puts range and number of samples into
``costs.json``.

``networks`` in the file are whole small networks, as a check: they make no figure.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from compiled_cases import (  # beside this file
    CHAIN,
    CHAINS,
    FAMILIES,
    FEW,
    MANY,
    PHASES,
    PRODUCTS,
    one_family,
)


class Rows:
    """What ``compiled_cases`` read, by family, what grows in it, and mode (None: not compiled)."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.known = {(row["family"], row["count"], row["mode"]): row for row in rows if "error" not in row}
        self.found: dict[str, dict[str, float]] = {}
        #: Host time of one more kernel, by mode and phase.
        self.kernel: dict[tuple[str, str], float] = {}

    def own(self, family: str, count: int, mode: str | None, phase: str, what: str) -> float:
        """The phase's own: a backward pass without its forward pass. NaN where it was not read."""
        row = self.known.get((family, count, mode))
        if row is None:
            return math.nan
        return float(row[phase][what]) - (float(row["forward"][what]) if phase == "backward" else 0.0)

    def more(self, family: str, counts: tuple[int, int], mode: str | None, phase: str, what: str) -> float:
        low, high = (self.own(family, count, mode, phase, what) for count in counts)
        return high - low

    def keep(self, figure: str, name: str, value: float) -> None:
        if math.isfinite(value):
            self.found.setdefault(figure, {})[name] = round(value, 4 if abs(value) < 10 else 0)

    def kernels(self, mode: str, prefix: str) -> None:
        """One more kernel, and what a call takes without its kernels."""
        for phase in PHASES:
            slopes = []
            for family in CHAINS:
                for counts in pairwise(CHAIN):
                    many = self.more(family, counts, mode, phase, "kernels") or math.nan
                    slopes.append(self.more(family, counts, mode, phase, "host_ns") / many)
                    name = f"{family}, {counts[0]} to {counts[1]}, {phase}"
                    self.keep(f"{prefix}-kernel-ns", name, slopes[-1])
                    if mode:
                        device = self.more(family, counts, mode, phase, "device_ns")
                        alone = self.more(family, counts, mode, phase, "kernel_ns")
                        self.keep("graph-gap-ns", name, (device - alone) / many)
            self.kernel[mode, phase] = median([one for one in slopes if math.isfinite(one)] or [math.nan])
            for family in CHAINS:
                for count in CHAIN:
                    spent = self.own(family, count, mode, phase, "host_ns")
                    spent -= self.own(family, count, mode, phase, "kernels") * self.kernel[mode, phase]
                    self.keep(f"{prefix}-call-ns", f"{family}, {count}, {phase}", spent)

    def eager(self) -> None:
        """One more kernel that is not compiled: how fast this host is."""
        for phase in PHASES:
            for family in CHAINS:
                for counts in pairwise(CHAIN):
                    many = self.more(family, counts, None, phase, "kernels") or math.nan
                    each = self.more(family, counts, None, phase, "host_ns") / many
                    self.keep("eager-kernel-ns", f"{family}, {counts[0]} to {counts[1]}, {phase}", each)

    def tensors(self, mode: str, prefix: str) -> None:
        """One more parameter, and one more input that is none; each has a kernel of its own."""
        for family in ("parameters", "inputs"):
            for phase in PHASES:
                for counts in pairwise(MANY):
                    spent = self.more(family, counts, mode, phase, "host_ns")
                    spent -= self.more(family, counts, mode, phase, "kernels") * self.kernel[mode, phase]
                    name = f"{counts[0]} to {counts[1]}, {phase}"
                    self.keep(f"{prefix}-{family[:-1]}-ns", name, spent / (counts[1] - counts[0]))

    def library(self) -> None:
        """A call of a library from compiled code, as a share of the same call in eager mode."""
        for family in PRODUCTS:
            for phase in PHASES:
                spent = self.more(family, FEW, "", phase, "host_ns")
                spent -= self.more(family, FEW, "", phase, "triton") * self.kernel["", phase]
                eager = self.more(family, FEW, None, phase, "host_ns")
                self.keep("compiled-library", f"{family}, {phase}", spent / eager)


def figures(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """What one more of each thing costs, by the families in which only that grows."""
    read = Rows(rows)
    for mode, prefix in (("", "compiled"), ("reduce-overhead", "graph")):
        read.kernels(mode, prefix)
        read.tensors(mode, prefix)
    read.library()
    read.eager()
    return read.found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=150.0, help="for all of it (150)")
    parser.add_argument(
        "--jobs", type=int, default=6, help="families at a time, each on processors of its own"
    )
    parser.add_argument("--one", choices=FAMILIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_family(options.one, options.out)
        return
    ends = time.monotonic() + options.seconds
    every = sorted(os.sched_getaffinity(0))
    size = max(1, len(every) // options.jobs)
    lanes = [every[at * size : (at + 1) * size] for at in range(options.jobs)]
    with tempfile.TemporaryDirectory() as folder:
        left, running = list(enumerate(FAMILIES)), dict[int, subprocess.Popen[bytes]]()
        while (left or running) and time.monotonic() < ends:
            for lane in range(len(lanes)):
                if left and (lane not in running or running[lane].poll() is not None):
                    number, family = left.pop(0)
                    words = [sys.executable, __file__, "--one", family, "--out", f"{folder}/{number}.json"]
                    caches = {
                        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/{number}",
                        "TORCHINDUCTOR_COMPILE_THREADS": "1",
                    }
                    running[lane] = subprocess.Popen(words, env={**os.environ, **caches})
                    os.sched_setaffinity(running[lane].pid, lanes[lane])
            running = {lane: one for lane, one in running.items() if one.poll() is None}
            time.sleep(0.1)
        for one in running.values():
            one.kill()
            one.wait()
        rows = [row for file in sorted(Path(folder).glob("*.json")) for row in json.loads(file.read_text())]
        missing = [family for family in FAMILIES if family not in {row["family"] for row in rows}]
    found = figures(rows)
    kept = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    kept["when"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    options.out.write_text(json.dumps({**kept, "figures": found, "networks": rows}, indent=1) + "\n")
    for figure, values in found.items():
        low, high = min(values.values()), max(values.values())
        print(f"{figure}: {median(values.values()):.4g} ({low:.4g} to {high:.4g}), {len(values)} samples")
    for row in rows:
        if "error" in row:
            print(row["family"], row["count"], row["mode"], row["error"], file=sys.stderr)
    print("no time for", ", ".join(missing) or "nothing", file=sys.stderr)


if __name__ == "__main__":
    main()
