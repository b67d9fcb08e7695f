"""`warpline tune` on the examples: what it reaches, in how long, beside what the field reports.

python benchmarks/tune.py [--budget 300] [NAME...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What the cases' sources report on their machines (issue 6).
REPORTED = {
    "loader-without-workers": 1.59,
    "fp32-bert": 1.8,
    "transpose-kernel": 8.0,
    "layernorm-finetune": 1.22,
}


def main() -> int:
    options = arguments()
    print("| example | best set | measured | 95 % interval | loss drift | reported | seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in options.names or REPORTED:
        print(row(name, options), flush=True)
    return 0


def row(name: str, options: argparse.Namespace) -> str:
    script = ROOT / "examples" / name / "slow.py"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        words = ["tune", "--run-dir", folder, "--budget", str(options.budget), "--json", "-", str(script)]
        done = subprocess.run(
            [sys.executable, "-m", "warpline", *words],
            cwd=script.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT / "server")},
            stdout=subprocess.PIPE,
            stderr=None if options.verbose else subprocess.DEVNULL,
            check=False,
        )
    seconds = f"{time.monotonic() - began:.0f}"
    reported = f"{REPORTED[name]:g}" if name in REPORTED else ""
    if done.returncode:
        return f"| {name} | exit status {done.returncode} | | | | {reported} | {seconds} |"
    found = json.loads(done.stdout)
    kept = [one for one in found["candidates"] if one["kept"]]
    if not kept:
        return (
            f"| {name} | nothing proven ({len(found['candidates'])} tried) | | | | {reported} | {seconds} |"
        )
    best = max(kept, key=lambda one: one["speedup"])
    drift = f"{best['loss_drift']:.1g}" if best["loss_drift"] is not None else "not seen"
    interval = f"{best['low']:.2f} to {best['high']:.2f}"
    cells = (name, ", ".join(best["fixes"]), f"{best['speedup']:.2f}", interval, drift, reported, seconds)
    return f"| {' | '.join(cells)} |"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--verbose", action="store_true", help="show what the scripts print")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
