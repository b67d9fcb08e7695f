"""The assumed figures (``server/warpline/model/costs.json``), and what recordings say of them.

    python benchmarks/fit.py              # the table, and below it what tests/captures show
    python benchmarks/fit.py --write      # and what they show goes into the table
    python benchmarks/fit.py --runs DIR... --keep benchmarks/figures/NAME.json --only FIGURE...

Needs no GPU: the recordings were made on H200s. What ``figures.py`` measured, and what ``--keep`` kept of
runs that are too many to keep themselves, is read from ``benchmarks/figures``.

Each figure is read off every recording that shows it; the table has the median, the range and the number of
samples. Where ``value`` is not that median, ``what`` says why. What has no sample is assumed: predictions
that rest on it are bounds or estimates. Bounds that were chosen and cannot be measured are in
``bounds.json``, beside the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from fitting import FIGURES, Recording, between_ms, copy_rate  # beside this file

from warpline.attribution.peaks import KNOWN
from warpline.model import costs
from warpline.simulate import device

CAPTURES = ROOT / "tests/captures"
MEASURED = ROOT / "benchmarks/figures"
TABLE = ROOT / "server/warpline/model/costs.json"
SCRIPT = "benchmarks/fit.py"


def sampled() -> dict[str, dict[str, float]]:
    """Figure -> recording -> what it shows."""
    found: dict[str, dict[str, float]] = {name: {} for name in FIGURES}
    between: dict[str, float] = {}
    copies: dict[str, dict[str, float]] = {"Pinned": {}, "Pageable": {}}
    for packed in sorted(CAPTURES.glob("*.tar.xz")):
        name = packed.name.removesuffix(".tar.xz")
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            one = Recording(name, Path(folder))
        for figure, read in FIGURES.items():
            value = read(one)
            if value is not None:
                found[figure][name] = value
        for memory, rates in copies.items():
            if rate := copy_rate(one, memory):
                rates[name] = rate
        if name.startswith("fp32-bert"):
            between[name] = between_ms(one)
    found["autocast-bytes"] = {"fp32-bert": between["fp32-bert-fixed"] / between["fp32-bert"]}
    if all(copies.values()):
        slow = median(copies["Pageable"].values())
        found["pinned-copy"] = {name: rate / slow for name, rate in copies["Pinned"].items()}
    for file in sorted(MEASURED.glob("*.json")):
        for figure, values in json.loads(file.read_text(encoding="utf-8"))["figures"].items():
            mine = found.setdefault(figure, {})
            mine |= {f"{file.stem}: {name}": value for name, value in values.items()}
    found["tensor-cores"] = {
        name: peaks.fp32 * device.REACHED["fp32"] / (peaks.half * device.REACHED["bf16"])
        for name, peaks in KNOWN.items()
    }
    return found


def keep(folders: list[Path], out: Path, only: list[str]) -> None:
    """What each run below ``folders`` shows of the figures ``only``, by the name of the folder it lies in."""
    found: dict[str, dict[str, float]] = {}
    devices, days = set(), set()
    for folder in folders:
        for manifest in sorted(folder.glob("**/manifest.json")):
            try:
                one = Recording(manifest.parent.parent.name, manifest.parent)
            except Exception as error:  # noqa: BLE001 - one that cannot be read costs only itself
                print(f"{manifest.parent}: {error}", file=sys.stderr)
                continue
            devices.add(one.trace.manifest.device.name)
            days.add(datetime.fromtimestamp(manifest.stat().st_mtime, timezone.utc).date().isoformat())
            for figure in only:
                value = FIGURES[figure](one)
                if value is not None:
                    found.setdefault(figure, {})[one.name] = round_(value)
    kept = {"device": ", ".join(sorted(devices)), "when": ", ".join(sorted(days)), "figures": found}
    out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="range and number of samples into costs.json")
    parser.add_argument("--runs", type=Path, nargs="+", help="folders that have runs in them, to be kept")
    parser.add_argument("--keep", type=Path, help="where what --runs show is written")
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=list(FIGURES), help="with --runs")
    options = parser.parse_args()
    if bool(options.runs) != bool(options.keep):
        parser.error("--runs and --keep belong together")
    if options.runs:
        keep(options.runs, options.keep, options.only)
        return
    print("| figure | value | seen | samples | script | what it is |\n|---|---|---|---|---|---|")
    for name, one in costs.table().items():
        seen = "" if one.low is None else f"{one.low:g} to {one.high:g}"
        print(f"| {name} | {one.value:g} | {seen} | {one.samples} | {one.script} | {one.what} |")
    print("\n| bound | value | what it decides |\n|---|---|---|")
    for name, bound in costs.bounds().items():
        print(f"| {name} | {bound.value:g} | {bound.what} |")
    assumed = [name for name, one in costs.table().items() if not one.samples]
    print(f"\n{len(assumed)} of {len(costs.table())} figures stand on no measurement: {', '.join(assumed)}\n")
    found = sampled()
    fields = json.loads(TABLE.read_text(encoding="utf-8"))
    for name, values in found.items():
        if not values:
            print(f"{name}: no recording shows it")
            continue
        low, high = round_(min(values.values())), round_(max(values.values()))
        print(f"{name}: {median(values.values()):.3g} ({low:g} to {high:g}), {len(values)} samples")
        print("   ", ", ".join(f"{one} {value:.3g}" for one, value in values.items()))
        if name in fields:
            fields[name] |= {"low": low, "high": high, "samples": len(values), "script": SCRIPT}
    if options.write:
        rows = [f" {json.dumps(name)}: {json.dumps(one, indent=None)}" for name, one in fields.items()]
        TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def round_(value: float) -> float:
    """To three digits."""
    return float(f"{value:.3g}")


if __name__ == "__main__":
    main()
