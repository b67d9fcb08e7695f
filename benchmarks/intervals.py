"""Do nine of ten measured gains lie inside their intervals? Each round of readings by those of the others.

    python benchmarks/intervals.py                                    # server/warpline/measure/known.json
    python benchmarks/intervals.py --tables                           # what was predicted at first contact
    python benchmarks/intervals.py --fit [--write]                    # the figures in costs.json
    python benchmarks/intervals.py --add BETS.json --note bets/cpu    # with readings of bets.py put into it
    python benchmarks/intervals.py --add-tables round28cpu            # with those of rounds of the tables

An interval that is scored on the readings that made it holds nine of ten of them, whatever it is worth. So
the intervals of a round (scripts by the same authors, timed on the same day) are made from all other rounds.

``--tables`` takes the predictions and the gains from docs/measuring-tables.md: those of the code of their
day; some of their errors were fixed since. ``known.json`` has some of them as today's code predicts them.

``--fit`` compares values of the two figures that shape the errors by the interval score of log gains
(T. Gneiting, A. Raftery, *Strictly proper scoring rules, prediction, and estimation*, JASA 2007): the width,
and 2 / 0.1 times what a measured gain lies outside. The best score of rounds that were left out decides,
for today's predictions and those of first contact together.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from statistics import median
from typing import cast

from betting import program_name  # beside this file

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from warpline.measure import calibration
from warpline.measure.calibration import WAITS, Reading, family, known, reach, with_bounds
from warpline.model.report import Basis, Predicted

KNOWN = ROOT / "server/warpline/measure/known.json"
COSTS = ROOT / "server/warpline/model/costs.json"
TABLES = ROOT / "docs/measuring-tables.md"
#: Tables of TABLES, by their heading, the round of KNOWN that they are of, and the kind of device.
FIRST = (
    ("First contact on CPUs, seven scripts", "bets/cpu", "cpu"),
    ("First contact on CPUs, round 3", "bets/round3", "cpu"),
    ("First contact on GPUs, round 5", "round5", "cuda"),
    ("First contact on GPUs, round 6", "round6", "cuda"),
    ("First contact on GPUs, round 8", "round8", "cuda"),
    ("First contact on GPUs, round 9", "round9", "cuda"),
    ("First contact on CPUs, round 9", "round9cpu", "cpu"),
    ("First contact on GPUs, round 10", "round10", "cuda"),
    ("First contact on CPUs, round 10", "round10cpu", "cpu"),
    ("First contact on GPUs, round 11", "round11", "cuda"),
    ("First contact on CPUs, round 12", "round12cpu", "cpu"),
    ("First contact on GPUs, round 13", "round13", "cuda"),
    ("First contact on CPUs, round 13", "round13cpu", "cpu"),
    ("First contact on GPUs, round 14", "round14", "cuda"),
    ("First contact on CPUs, round 15", "round15cpu", "cpu"),
    ("First contact on GPUs, round 16", "round16", "cuda"),
    ("First contact on CPUs, round 16", "round16cpu", "cpu"),
    ("First contact on GPUs, round 17", "round17", "cuda"),
    ("First contact on CPUs, round 18", "round18cpu", "cpu"),
    ("First contact on CPUs, round 19", "round19cpu", "cpu"),
    ("First contact on GPUs, round 20", "round20", "cuda"),
    ("First contact on CPUs, round 20", "round20cpu", "cpu"),
    ("First contact on GPUs, round 21", "round21", "cuda"),
    ("First contact on CPUs, round 21", "round21cpu", "cpu"),
    ("Framework programs, round 5", "frameworks3", "cuda"),
    ("First contact on CPUs, round 23", "round23cpu", "cpu"),
    ("First contact on GPUs, round 25", "round25", "cuda"),
    ("First contact on CPUs, round 25", "round25cpu", "cpu"),
    ("First contact on CPUs, round 26", "round26cpu", "cpu"),
    ("First contact on GPUs, round 27", "round27", "cuda"),
    ("First contact on CPUs, round 27", "round27cpu", "cpu"),
    ("First contact on GPUs, round 28", "round28", "cuda"),
    ("First contact on CPUs, round 28", "round28cpu", "cpu"),
    ("First contact on CPUs, round 29", "round29cpu", "cpu"),
    ("First contact on GPUs, round 30", "round30", "cuda"),
    ("Framework programs, round 8", "frameworks8", "cuda"),
    ("First contact on CPUs, round 30", "round30cpu", "cpu"),
    ("First contact on GPUs, round 31", "round31", "cuda"),
    ("Framework programs, round 9", "frameworks9", "cuda"),
    ("First contact on GPUs, round 32", "round32", "cuda"),
    ("First contact on CPUs, round 32", "round32cpu", "cpu"),
    ("Framework programs, round 9, second part", "frameworks9", "cuda"),
)
#: Their columns, where they are the output of pairs.py.
COLUMNS = {"rule": "fix", "promised": "predicted"}
LEAST_SCALES, SHRINKS = (0.1, 0.25, 0.35, 0.5, 0.7, 1.0), (2.0, 4.0, 6.0, 8.0, 12.0, 16.0)
#: A score is as good as the best one if it is within this share of it.
ALIKE = 0.05
Row = tuple[Reading, float, float]


def round_of(one: Reading) -> str:
    folder = one.script.rpartition("/")[0]
    return "own" if folder.startswith(("examples", "benchmarks")) else folder


def held_out(tests: Sequence[Reading], readings: Sequence[Reading]) -> list[Row]:
    """``(reading, low, high)`` of ``tests``, each by the ``readings`` of other rounds."""
    found = []
    for name in dict.fromkeys(map(round_of, tests)):
        others = [one for one in readings if round_of(one) != name]
        usual = reach(others)
        for one in tests:
            if round_of(one) == name:
                said = Predicted(1.0, one.predicted, cast(Basis, one.basis))
                # A loader's readings promised that the wait goes away.
                most = one.predicted if one.rule in WAITS else math.inf
                bounds = with_bounds(said, one.alike, (), others, most, usual)
                found.append((one, bounds.low or 0.0, bounds.high or math.inf))
    return found


def score(rows: Sequence[Row]) -> float:
    """The mean interval score of the logarithms: smaller is better."""
    return sum(
        math.log(high / low) + 2 / 0.1 * max(0.0, math.log(low / one.measured), math.log(one.measured / high))
        for one, low, high in rows
    ) / len(rows)


def show(rows: Sequence[Row]) -> None:
    print("| script | fix | device | basis | predicted | interval | measured | inside |")
    print("|---|---|---|---|---|---|---|---|")
    groups: dict[str, list[Row]] = {}
    for one, low, high in rows:
        inside = "yes" if low <= one.measured <= high else "no"
        print(
            f"| {one.script} | {one.rule} | {one.device} | {one.basis} | {one.predicted:.2f} "
            f"| {low:.2f} to {high:.2f} | {one.measured:.2f} | {inside} |"
        )
        for name in (round_of(one), f"family: {family(one.rule) or 'other'}", f"basis: {one.basis}", "all"):
            groups.setdefault(name, []).append((one, low, high))
    print("\n| of | readings | inside | median width | median error | score |\n|---|---|---|---|---|---|")
    for name, some in groups.items():
        held = sum(low <= one.measured <= high for one, low, high in some)
        width = median(high / low for _, low, high in some)
        error = median(abs(one.predicted / one.measured - 1) for one, _, _ in some)
        share = f"{held} of {len(some)} ({100 * held / len(some):.0f} %)"
        print(f"| {name} | {len(some)} | {share} | {width:.2f} | {100 * error:.0f} % | {score(some):.2f} |")


def first_contact() -> Iterator[Reading]:
    """What the tables say, one reading for each program, rule and prediction: Warpline's edit before the
    author's."""
    text = TABLES.read_text(encoding="utf-8")
    for heading, folder, device in FIRST:
        lines = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0].splitlines()
        found, header = dict[tuple[str, str, str], dict[str, str]](), list[str]()
        for line in lines:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] == "script":
                header = [COLUMNS.get(cell, cell) for cell in cells]
            elif line.startswith("| ") and "interval" in header:
                row = dict(zip(header, cells, strict=True))
                key = row["script"], row["fix"].split(" (")[0], row["predicted"].split(" (")[0]
                # Several findings together are no prediction of one of them, and some flaws have none.
                one = row["basis"] and "findings)" not in row["fix"] + row["predicted"]
                if one and (key not in found or row.get("by", "ours") == "ours"):
                    found[key] = row
            elif "Tuned:" in line:
                break
        for (script, rule, said), row in found.items():
            gains = float(said), float(row["measured"].split(" (")[0])
            yield Reading(row["basis"], *gains, f"{folder}/{script}", rule, device)


def fit(write: bool) -> None:
    """Which figures give the best score; into costs.json with ``write``."""
    scores, first = {}, tuple(first_contact())
    for least, shrink in product(LEAST_SCALES, SHRINKS):
        calibration.LEAST_SCALE, calibration.SHRINK = least, shrink
        scores[least, shrink] = sum(score(held_out(tests, known())) for tests in (known(), first)) / 2
    best = min(scores, key=lambda one: scores[one])
    good = [one for one, found in scores.items() if found <= (1 + ALIKE) * scores[best]]
    calibration.LEAST_SCALE, calibration.SHRINK = best
    rounds = sorted(set(map(round_of, known())))
    reaches = [reach([one for one in known() if round_of(one) != name]) for name in rounds]
    count = len(known())
    figures = {
        "interval-least-scale": (best[0], [one[0] for one in good], count),
        "interval-shrink": (best[1], [one[1] for one in good], count),
    }
    for (device, tried), far in reach(known()).items():
        name = f"interval-reach-{device}" + ("-tried" if tried else "")
        count = sum(one.alike.reached == (device, tried) for one in known())
        figures[name] = (round(far, 2), [round(one[device, tried], 2) for one in reaches], count)
    fields = json.loads(COSTS.read_text(encoding="utf-8"))
    for name, (value, seen, count) in figures.items():
        print(f"{name}: {value:g} ({min(seen):g} to {max(seen):g}), {count} readings")
        fields[name] |= {"value": value, "low": min(seen), "high": max(seen), "samples": count}
    print(f"scores: {scores[best]:.2f} the best, {len(good)} of {len(scores)} as good")
    if write:
        rows = [f" {json.dumps(name)}: {json.dumps(one)}" for name, one in fields.items()]
        COSTS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def added(files: list[Path], note: str) -> None:
    """The timed bets of ``files`` as readings, below what is known already."""
    rows = json.loads(KNOWN.read_text(encoding="utf-8"))
    for file in files:
        for bet in json.loads(file.read_text(encoding="utf-8")):
            if bet["ratios"]:
                name = f"{note}/{program_name(Path(bet['folder'], bet['script']))}"
                device = "cuda" if "NVIDIA" in bet["device"] else "cpu"
                numbers = [round(bet["predicted"], 3), round(median(bet["ratios"]), 3)]
                row = [bet["basis"], *numbers, name, bet["rule"], device, bet["made"][:10]]
                if row not in rows:
                    rows.append(row)
    _write(rows)


def added_tables(rounds: list[str]) -> None:
    """The rows of ``rounds`` in TABLES as readings, as ``added`` does."""
    rows = json.loads(KNOWN.read_text(encoding="utf-8"))
    for one in first_contact():
        if round_of(one) in rounds:
            row = [one.basis, one.predicted, one.measured, one.script, one.rule, one.device]
            if row not in [other[: len(row)] for other in rows]:
                rows.append([*row, date.today().isoformat()])
    _write(rows)


def _write(rows: list[list[object]]) -> None:
    KNOWN.write_text("[\n " + ",\n ".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
    known.cache_clear()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--add", type=Path, nargs="+", default=[], help="files of bets.py")
    parser.add_argument("--add-tables", nargs="+", default=[], metavar="ROUND", help="rounds of the tables")
    parser.add_argument("--note", default="bets", help="where the scripts are from")
    parser.add_argument("--tables", action="store_true", help="the predictions of first contact")
    parser.add_argument("--fit", action="store_true", help="the figures that shape the intervals")
    parser.add_argument("--write", action="store_true", help="with --fit: into costs.json")
    options = parser.parse_args()
    if options.add_tables:
        added_tables(options.add_tables)
    if options.add:
        added(options.add, options.note)
    if options.fit:
        fit(options.write)
    else:
        show(held_out(tuple(first_contact()) if options.tables else known(), known()))


if __name__ == "__main__":
    main()
