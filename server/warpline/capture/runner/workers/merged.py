"""Merges the lines of all workers into ``Workers``, which the server reads."""

from __future__ import annotations

from statistics import median
from typing import Any

from .sampled import line_ns, times
from .traced import Location

#: ``NEAR``: an event's cost is believed up to so many times that in a plain loop, whose caches are warm.
#: ``DENSE``: if events at the plain loop's cost are at least this share of a recorded batch (lines of quick
#: plain Python), a higher cost is believed too.
NEAR, DENSE = 3.0, 0.25


def merged(told: list[dict[str, Any]]) -> dict[str, Any] | None:
    """``Workers`` of what the workers wrote, None where none did."""
    plain = [ns for one in told for ns in one["plain_ns"]]
    recorded = [one for one in told if one["recorded"]]
    recorded = [one for one in recorded if not one.get("brief")] or recorded
    batches = sum(one["recorded"] for one in recorded)
    if not batches:
        timed = (
            {"batches": 0, "batch_ms": median(plain) / 1e6, "lines": [], **_working(told)} if plain else {}
        )
        return timed or None
    total = 0.0
    lines: dict[Location, list[float]] = {}
    texts: dict[Location, str] = {}
    for one in recorded:
        cost = _event_cost(one)
        total += one["recorded_ns"] - cost * one["events"]
        for file, line, function, ns, events, calls, *text in one["lines"]:
            texts[file, line, function] = text[0] if text else ""
            spent = lines.setdefault((file, line, function), [0.0, 0.0])
            spent[0] += max(0.0, ns - cost * events)
            spent[1] += calls
    for spent in lines.values():
        spent[0] /= batches
    batch_ns = total / batches
    if recorded[0].get("brief") and plain and batch_ns > 0:
        # A part of a batch, when much else began: it says which lines take most of one.
        usual = median(plain)
        for spent in lines.values():
            spent[0] *= usual / batch_ns
        batch_ns = usual
    if _by_samples(told, lines) and plain:
        # Samples are of other batches than those that were timed.
        batch_ns = max(sum(plain) / len(plain), sum(spent[0] for spent in lines.values()))
    return {
        "batches": batches,
        "batch_ms": batch_ns / 1e6,
        "lines": [
            {
                "file": file,
                "line": line,
                "function": function,
                "batch_ms": ns / 1e6,
                "calls": calls / batches,
                "text": texts[file, line, function],
            }
            for (file, line, function), (ns, calls) in sorted(lines.items(), key=lambda item: -item[1][0])
        ],
        **_working(told),
    }


def _working(told: list[dict[str, Any]]) -> dict[str, float]:
    """``queued_ms`` and ``busy``, by the batches that were only timed."""
    timed = [one for each in told for one in zip(each["plain_ns"], each.get("working_ns", ()))]
    # The kernel's count may run ahead of the clock on a machine that is very busy.
    timed = [(ns, working) for ns, working in timed if working[1] < ns]
    if not timed:
        return {}
    own = [ns - queued for ns, (_, queued) in timed]
    return {
        "queued_ms": max(0.0, median(ns for ns, _ in timed) - median(own)) / 1e6,
        "busy": sum(computed for _, (computed, _) in timed) / max(1, sum(own)),
    }


def _by_samples(told: list[dict[str, Any]], lines: dict[Location, list[float]]) -> bool:
    """Replace the times of ``lines`` (ns per batch) by those of the samples. False if there are too few
    samples.

    Code within a line, such as a generator, has a row of its own; the row that took longest gets all of the
    line's time."""
    sampled = times(told)
    if sampled is None:
        return False
    counts, sample_ns = sampled
    rows: dict[tuple[str, int], list[list[float]]] = {}
    for (file, line, _), spent in lines.items():
        rows.setdefault((file, line), []).append(spent)
    for place, several in rows.items():
        whole = sum(spent[0] for spent in several)
        longest = max(several, key=lambda spent: spent[0])
        for spent in several:
            spent[0] = 0.0
        longest[0] = line_ns(whole, counts.get(place, 0.0), sample_ns)
    return True


def _event_cost(one: dict[str, Any]) -> float:
    """The cost of a trace event in ns: the extra time of recorded batches over the median other one, per
    event. It is believed only within ``NEAR`` and ``DENSE``: on a busy machine batches differ for other
    reasons too."""
    plain = sorted(one["plain_ns"])
    if not plain or not one["events"]:
        return float(min(one["event_ns"], one["recorded_ns"] / max(1, one["events"])))
    usual = plain[len(plain) // 2] * one["recorded"]
    longer = max(0.0, (one["recorded_ns"] - usual) / one["events"])
    dense = one["events"] * one["event_ns"] > DENSE * one["recorded_ns"]
    return float(longer if dense else min(longer, NEAR * one["event_ns"]))
