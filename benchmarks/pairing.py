"""Pairs of programs as they are kept in a file, and their table: for ``pairs.py``."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from betting import read as read_bets  # beside this file
from first_contact import Truth, programs, truth_of
from first_contact import read as read_results

#: Twins made as many turns where the counts differ by so many at most.
SAME, SAME_SHARE = 2, 0.03
#: The same where the first turns are missed: of a line that a sampler has to see first, of a step that is
#: recorded as a graph after some.
NEARLY = 0.25
#: Turns whose mean is so many times their median come in bursts, as batches do that workers made ahead.
BURSTS = 3.0
#: Name -> {"at", "runs": [what beats.py said, with "which" and "round"]}.
Pairs = dict[str, dict[str, Any]]


def read(path: Path) -> Pairs:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path: Path, pairs: Pairs) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(pairs, indent=1), encoding="utf-8")
    partial.replace(path)


@dataclass
class Gain:
    """``speedup`` by each round; ``note``: how it was had, where that is not by turns of one kind of loop."""

    rounds: list[float]
    whole: float  # by all turns after the first, with what is compiled or tuned on the way
    plain_ms: float
    memory: float | None  # most memory of the plain script by that of the fixed one
    note: str = ""

    @property
    def speedup(self) -> float:
        return math.exp(sum(map(math.log, self.rounds)) / len(self.rounds))


def gain_of(runs: list[dict[str, Any]], changed: str = "fixed") -> Gain | str:
    """The gain of the variant ``changed``, or why there is none."""
    by: dict[str, dict[int, dict[str, Any]]] = {"plain": {}, changed: {}}
    mine = [run for run in runs if run["which"] in by]
    for run in mine:
        if "ms" in run:
            by[run["which"]][run["round"]] = run
    both = sorted(by["plain"].keys() & by[changed].keys())
    if not both:
        return (
            "; ".join(f"{run['which']}: {run['reason']}" for run in mine if "reason" in run) or "not reached"
        )
    rounds, whole, notes = [], [], set()
    for number in both:
        plain, fixed = by["plain"][number], by[changed][number]
        cut = plain["cut"] or fixed["cut"]
        turns = 1.0
        other = plain["kind"] != fixed["kind"]
        vague = other or plain["kind"] == "line"
        few = max(SAME, (NEARLY if vague else SAME_SHARE) * plain["beats"])
        if other:
            notes.add(f"turns of {plain['kind']} and {fixed['kind']}")
        if BURSTS * plain["median_ms"] < plain["ms"]:
            notes.add("bursts: epochs begin, or the script is too short for its loader")
        if abs(plain["beats"] - fixed["beats"]) > few:
            if plain.get("line") != fixed.get("line"):
                return f"two lines were taken for the loop: {plain.get('line')}, {fixed.get('line')}"
            if not cut:
                turns = plain["beats"] / fixed["beats"]
                notes.add(f"by all turns, {plain['beats']} and {fixed['beats']}")
            elif other:
                return f"loops of two kinds: {plain['kind']} and {fixed['kind']}"
            elif plain["kind"] == "line" or not (plain["cut"] and fixed["cut"]):
                notes.add("cut: turns may differ")
        rounds.append(turns * plain["ms"] / fixed["ms"])
        whole.append(turns * plain["loop_ms"] / fixed["loop_ms"])
    peaks = [by["plain"][at]["peak_bytes"] / max(1, by[changed][at]["peak_bytes"]) for at in both]
    plain_ms = median(by["plain"][at]["ms"] for at in both)
    return Gain(rounds, median(whole), plain_ms, median(peaks) or None, ", ".join(sorted(notes)))


def edit(at: int) -> str:
    """The variant with a script's bet number ``at``."""
    return f"edit {at}"


@dataclass
class Promise:
    rule: str
    speedup: float
    low: float
    high: float
    basis: str
    findings: int = 1


def promise_of(truth: Truth, result: dict[str, Any]) -> Promise | str:
    """What the findings of the planted flaw promise together, or why they promise nothing."""
    if result.get("failure"):
        return "profile failed"
    right = [one for one in result["findings"] if one["rule"] in truth.rules]
    here = [one for one in right if truth.at_line(one)]
    said = [one for one in here or right if (one.get("predicted") or {}).get("speedup")]
    if not said:
        return "found, no promise" if right else "not found"
    if not here:
        said = [max(said, key=lambda one: one["predicted"]["speedup"])]
    each = [one["predicted"] for one in said]
    speedup, low, high = (
        together([one.get(key) or one["speedup"] for one in each]) for key in ("speedup", "low", "high")
    )
    rules = dict.fromkeys(one["rule"] for one in said)
    bases = dict.fromkeys(one["basis"] for one in each)
    return Promise("|".join(rules), speedup, low, high, "|".join(bases), len(said))


def together(speedups: list[float]) -> float:
    """What is left of the step when each takes its own share of it."""
    return 1 / max(0.01, 1 - sum(1 - 1 / one for one in speedups))


def show(options: argparse.Namespace) -> None:
    pairs, results = read(options.pairs), {}
    for path in options.results:
        results |= read_results(path)
    real: list[tuple[list[str], Promise | str, Gain]] = []
    none: list[tuple[list[str], Promise | str, Gain]] = []
    untimed: list[str] = []
    for program in programs(options.round):
        truth = truth_of(program)
        if not (options.round / "fixed" / program.key).exists():
            continue
        gain = gain_of(pairs.get(program.name, {}).get("runs", []))
        if isinstance(gain, str):
            untimed.append(f"{program.name} ({gain})")
            continue
        result = results.get(program.key)
        promise = promise_of(truth, result) if result else "not profiled"
        row = (cells(program.name, truth, promise, gain), promise, gain)
        (real if gain.speedup >= options.least else none).append(row)
    if real:
        print(f"Flaws that cost at least {100 * (1 - 1 / options.least):.0f} % of the step:\n")
        print_table(real)
        print(totals(real))
    if none:
        print("\nNo flaw at this size:\n")
        print_table(none)
        print(totals(none))
    if untimed:
        print("\nNot timed:", ", ".join(untimed))


def cells(name: str, truth: Truth, promise: Promise | str, gain: Gain) -> list[str]:
    planted = "|".join(sorted(truth.rules))
    cost = f"{100 * (1 - 1 / gain.speedup):.0f} %"
    measured = f"{gain.speedup:.2f}"
    if len(gain.rounds) > 1:
        measured += f" ({min(gain.rounds):.2f} to {max(gain.rounds):.2f})"
    memory = f"{gain.memory:.2f}" if gain.memory else ""
    if isinstance(promise, str):
        said = [promise, "", "", measured, "", ""]
    else:
        inside = "yes" if promise.low <= gain.speedup <= promise.high else "NO"
        error = f"{100 * (promise.speedup / gain.speedup - 1):+.0f} %"
        count = f" ({promise.findings} findings)" if promise.findings > 1 else ""
        interval = f"{promise.low:.2f} to {promise.high:.2f}"
        said = [f"{promise.speedup:.2f}{count}", interval, promise.basis, measured, error, inside]
    return [name, planted, f"{gain.plain_ms:.2f}", cost, *said, f"{gain.whole:.2f}", memory, gain.note]


def print_table(rows: list[tuple[list[str], Promise | str, Gain]]) -> None:
    head = ["script", "rule", "plain ms", "cost", "promised", "interval", "basis", "measured", "error"]
    head += ["inside", "whole loop", "memory", "note"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row, _, _ in rows:
        print("| " + " | ".join(row) + " |")


def totals(rows: list[tuple[list[str], Promise | str, Gain]]) -> str:
    said = [(one, gain.speedup) for _, one, gain in rows if isinstance(one, Promise)]
    lines = [f"\n{len(said)} of {len(rows)} have a promise"]
    groups = {"all": said}
    for one, measured in said:
        groups.setdefault(one.basis, []).append((one, measured))
    for name, some in groups.items() if said else []:
        inside = sum(one.low <= measured <= one.high for one, measured in some)
        error = 100 * median(abs(one.speedup / measured - 1) for one, measured in some)
        width = median(one.high / one.low for one, _ in some)
        lines.append(
            f"{name}: {inside} of {len(some)} inside, median error {error:.0f} %, median width {width:.2f}"
        )
    return "\n".join(lines)


def show_edits(options: argparse.Namespace) -> None:
    """Warpline's own edits: what they promised and what they gained."""
    pairs = read(options.pairs)
    rows: list[tuple[list[str], Promise | str, Gain]] = []
    untimed, count = [], dict[str, int]()
    for bet in read_bets(options.bets):
        name = bet.name
        at = count[name] = count.get(name, -1) + 1
        gain = gain_of(pairs.get(name, {}).get("runs", []), edit(at))
        if isinstance(gain, str):
            untimed.append(f"{name} {bet.rule} ({gain})")
            continue
        promise = Promise(bet.rule, bet.predicted, bet.low, bet.high, bet.basis)
        rows.append((cells(name, Truth({bet.rule}), promise, gain), promise, gain))
    if rows:
        print_table(rows)
        print(totals(rows))
    if untimed:
        print("\nNot timed:", ", ".join(untimed))
