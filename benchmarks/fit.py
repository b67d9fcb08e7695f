"""The assumed figures (``server/warpline/model/costs.json``), and those of them that recordings can show.

    python benchmarks/fit.py          # the table; figures read off tests/captures stand beside it

Needs no GPU. What has no sample in the table is assumed: predictions that rest on it are bounds or estimates.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from warpline import judging
from warpline.model.costs import table
from warpline.simulate import calibrate
from warpline.simulate.timeline import LAUNCH, LOADER, SYNC, timeline_of

COMPILED = ("compiled", "compiled_bert", "gpt_compiled")
EAGER = (
    "layernorm-finetune",
    "fp32-bert",
    "checkpointed",
    "resnet_amp",
    "vit_sdpa",
    "vae",
    "lstm",
    "quickstart",
)


def launch_us(name: str) -> float:
    """Host time a launch, waits and the loader left out, in microseconds, under the profiler."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(ROOT / f"tests/captures/{name}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        found = judging.read(Path(folder), None)
        line = calibrate.unblocked(timeline_of(found.trace, found.places))
    own = (line.kind != SYNC) & (line.kind != LOADER)
    return float(line.host_ns[own].sum() / max(1, (line.kind == LAUNCH).sum()) / 1e3)


def main() -> None:
    print("| figure | value | seen | samples | script | what it is |")
    print("|---|---|---|---|---|---|")
    for name, one in table().items():
        seen = "" if one.low is None and one.high is None else f"{one.low} to {one.high}"
        print(f"| {name} | {one.value:g} | {seen} | {one.samples} | {one.script} | {one.what} |")
    assumed = [name for name, one in table().items() if not one.samples]
    print(f"\n{len(assumed)} of {len(table())} stand on no measurement: {', '.join(assumed)}")
    compiled = {name: launch_us(name) for name in COMPILED}
    eager = {name: launch_us(name) for name in EAGER}
    print("\nhost time a launch (us), compiled:", {name: round(us, 1) for name, us in compiled.items()})
    print("eager:", {name: round(us, 1) for name, us in eager.items()})
    usual = median(eager.values())
    shares = [us / usual for us in compiled.values()]
    print(
        f"compiled-launch: {median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f}), "
        f"{len(shares)} compiled recordings by the median of {len(eager)} eager ones"
    )


if __name__ == "__main__":
    main()
