"""What compiled code leaves on the host, and what a CUDA graph costs: plain torch, on a GPU.

    python benchmarks/compiling.py --out benchmarks/figures/NAME.json [--seconds 150] [--jobs 6]

Functions of which only one thing grows (kernels, inputs, parameters, products) are timed as they are,
compiled, and as CUDA graphs: what one more of that thing costs is the difference of two of them. What a
compiled kernel costs is read off whole small networks, whose kernels have more arguments. Each phase
(inference, forward, backward) is a sample of its own. The host's time is taken while the device's queue has
room, and the least of several readings counts. All of it is given in launches of an elementwise operator
that is not compiled. ``fit.py`` puts range and number of samples into ``costs.json``.
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
from itertools import pairwise, product
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
    NORMS,
    PHASES,
    PRODUCTS,
    networks,
    one_family,
)

#: Host time of an elementwise operator in eager mode, by the kernels that it launches.
EAGER = "eager-kernel-ns"


class Rows:
    """What ``compiled_cases`` read, by family, what grows in it, and mode (None: not compiled)."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.known = {(row["family"], row["count"], row["mode"]): row for row in rows if "error" not in row}

    def own(self, family: str, count: int, mode: str | None, phase: str, what: str) -> float:
        """The phase's own: a backward pass without its forward pass. NaN where it was not read."""
        row = self.known.get((family, count, mode))
        if row is None:
            return math.nan
        return float(row[phase][what]) - (float(row["forward"][what]) if phase == "backward" else 0.0)

    def slopes(
        self, families: tuple[str, ...], counts: tuple[int, ...], mode: str | None, phase: str, what: str = ""
    ) -> dict[str, float]:
        """Host time of one more ``what`` ("kernels"; "": of what grows) between neighbouring counts, in ns.
        Where fewer than half as many kernels came as things, they were fused into others."""
        found = {}
        for family in families:
            for low, high in pairwise(counts):
                spent, more = (
                    self.own(family, high, mode, phase, one) - self.own(family, low, mode, phase, one)
                    for one in ("host_ns", "kernels")
                )
                if more >= (high - low) / 2:
                    found[f"{family}, {low} to {high}, {phase}"] = spent / (more if what else high - low)
        return found

    def fixed(self, phase: str) -> float:
        """What the call of a phase takes without compiled code, its kernels left out."""
        each = median(self.slopes(CHAINS, CHAIN, None, phase, "kernels").values())
        host, kernels = (self.own(CHAINS[0], CHAIN[0], None, phase, one) for one in ("host_ns", "kernels"))
        return host - kernels * each


def figures(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """What is left of the host's time. All but the first figure and shares are counted in the first one's
    median of the forward pass: a host may be several times as fast as another."""
    read, found = Rows(rows), dict[str, dict[str, float]]()
    found[EAGER] = {}
    for phase in PHASES:
        found[EAGER] |= read.slopes(CHAINS, CHAIN, None, phase, "kernels")
    launch = median(value for name, value in found[EAGER].items() if name.endswith("forward"))

    def keep(figure: str, name: str, value: float) -> None:
        if math.isfinite(value):
            found.setdefault(figure, {})[name] = value

    for phase in PHASES:
        fixed, calls = read.fixed(phase), list[float]()
        each = median(read.slopes(CHAINS, CHAIN, "", phase, "kernels").values())
        for family, count in product(CHAINS, CHAIN):
            for mode, figure in (("", "compiled-call"), ("reduce-overhead", "graph-call")):
                spent = read.own(family, count, mode, phase, "host_ns") - fixed
                spent -= 0.0 if mode else read.own(family, count, mode, phase, "kernels") * each
                keep(figure, f"{family}, {count}, {phase}", spent / launch)
                calls += [] if mode else [spent]
        for name, value in read.slopes(("parameters",), MANY, "reduce-overhead", phase).items():
            keep("graph-parameter", name, value / launch)
        libraries = []
        for family in PRODUCTS:
            compiled, eager = (read.slopes((family,), FEW, mode, phase) for mode in ("", None))
            for name in compiled.keys() & eager.keys():
                keep("compiled-library", name, compiled[name] / eager[name])
            libraries += read.slopes((family,), FEW, "", phase, "kernels").values()
        for family in networks():
            host, kernels, own = (
                read.own(family, 0, "", phase, one) for one in ("host_ns", "kernels", "triton")
            )
            spent = host - fixed - median(calls) - (kernels - own) * median(libraries)
            keep("compiled-kernel", f"{family}, {phase}", spent / own / launch)
            if family in NORMS and phase != "inference":  # there the statistics are no part of the result
                keep("compiled-norm", f"{family}, {phase}", own / NORMS[family])
    return {
        figure: {name: float(f"{value:.3g}") for name, value in values.items()}
        for figure, values in found.items()
    }


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
    options.out.write_text(json.dumps({**kept, "figures": found}, indent=1) + "\n")
    for figure, values in found.items():
        low, high = min(values.values()), max(values.values())
        print(f"{figure}: {median(values.values()):.4g} ({low:.4g} to {high:.4g}), {len(values)} samples")
    for row in rows:
        if "error" in row:
            print(row["family"], row["count"], row["mode"], row["error"], file=sys.stderr)
    print("no time for", ", ".join(missing) or "nothing", file=sys.stderr)


if __name__ == "__main__":
    main()
