"""Do nine of ten measured gains lie inside their intervals? Each reading by those of other scripts.

    python benchmarks/intervals.py                                    # server/warpline/measure/known.json
    python benchmarks/intervals.py --add BETS.json --note bets/cpu    # with readings of bets.py put into it

An interval that is scored on the readings that made it holds nine of ten of them, whatever it is worth. So
the interval of each reading is made again from the readings of all other scripts.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from warpline.measure.calibration import Reading, alike, family, known, with_bounds
from warpline.model.report import Predicted

KNOWN = ROOT / "server/warpline/measure/known.json"


def interval(one: Reading, readings: tuple[Reading, ...]) -> tuple[float, float]:
    """``(low, high)`` of what ``one`` promised, by the readings of other scripts."""
    others = [other for other in readings if other.script != one.script]
    said = Predicted(1.0, one.predicted, one.basis)  # type: ignore[arg-type]
    found = with_bounds(said, [], others, one.device, one.rule)
    return found.low or one.predicted, found.high or one.predicted


def show(readings: tuple[Reading, ...]) -> None:
    print("| script | fix | device | basis | predicted | interval | measured | inside |")
    print("|---|---|---|---|---|---|---|---|")
    rows = [(one, *interval(one, readings)) for one in readings]
    for one, low, high in rows:
        inside = "yes" if low <= one.measured <= high else "no"
        print(
            f"| {one.script} | {one.rule} | {one.device} | {one.basis} | {one.predicted:.2f} "
            f"| {low:.2f} to {high:.2f} | {one.measured:.2f} | {inside} |"
        )
    groups = {"all": rows}
    for row in rows:
        kind = family(row[0].basis, row[0].rule) or row[0].basis
        groups.setdefault(kind, []).append(row)
        groups.setdefault(f"{kind}, {row[0].device}", []).append(row)
        groups.setdefault(row[0].device, []).append(row)
    for name, some in groups.items():
        held = sum(low <= one.measured <= high for one, low, high in some)
        print(
            f"\n{name}: {held} of {len(some)} inside ({100 * held / len(some):.0f} %), median width "
            f"{median(high / low for _, low, high in some):.2f}, median error "
            f"{100 * median(abs(one.predicted / one.measured - 1) for one, _, _ in some):.0f} %; "
            f"made of {_samples(some)} readings"
        )


def _samples(rows: list[tuple[Reading, float, float]]) -> str:
    """How many readings stand behind the intervals of these: as a user's prediction would have them."""
    counts = {len(alike(one.basis, None, one.device, one.rule)) for one, _, _ in rows}
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)


def added(files: list[Path], note: str) -> None:
    """The timed bets of ``files`` as readings, below what is known already."""
    rows = json.loads(KNOWN.read_text(encoding="utf-8"))
    for file in files:
        for bet in json.loads(file.read_text(encoding="utf-8")):
            if bet["ratios"]:
                name = f"{note}/{bet['script'].removesuffix('.py')}"
                device = "cuda" if "NVIDIA" in bet["device"] else "cpu"
                numbers = [round(bet["predicted"], 3), round(median(bet["ratios"]), 3)]
                row = [bet["basis"], *numbers, name, bet["rule"], device, bet["made"][:10]]
                if row not in rows:
                    rows.append(row)
    KNOWN.write_text("[\n " + ",\n ".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
    known.cache_clear()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--add", type=Path, nargs="+", default=[], help="files of bets.py")
    parser.add_argument("--note", default="bets", help="where the scripts are from")
    options = parser.parse_args()
    if options.add:
        added(options.add, options.note)
    show(known())


if __name__ == "__main__":
    main()
