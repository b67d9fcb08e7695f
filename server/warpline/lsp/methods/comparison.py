"""Two runs of one script, line by line, on the text as it is now."""

from __future__ import annotations

from typing import Any

from warpline.lsp import convert
from warpline.lsp.state.results import Results
from warpline.lsp.state.session import Session
from warpline.text.lines import content, split
from warpline.view.anchor import Anchor


def rows(session: Session, before: Results, after: Results) -> list[dict[str, Any]]:
    """The lines of both runs, the largest change first. A line of the older run is found in the newer
    run's text, and from there in the text now."""
    found = []
    for file in sorted({*before.costs, *after.costs}):
        earlier = _totals(before, file)
        later = _totals(after, file)
        moves = None
        if file in before.sources and file in after.sources:
            moves = Anchor(before.sources[file], split(after.sources[file]))
        was: dict[int, float] = {}
        gone: list[tuple[int, float]] = []
        for line, value in earlier.items():
            now = moves.where(line - 1) + 1 if moves is not None else 0
            if now > 0:
                was[now] = was.get(now, 0.0) + value
            else:
                gone.append((line, value))
        for line in sorted({*was, *later}):
            found.append(_row(session, after, (file, line), was.get(line), later.get(line)))
        found += [_gone(before, file, line, value) for line, value in gone]
    return sorted(found, key=lambda row: -abs(row["deltaMs"]))


def _totals(results: Results, file: str) -> dict[int, float]:
    return {line: sum(c.step_ms for c in costs) for line, costs in results.costs.get(file, {}).items()}


def _row(
    session: Session, after: Results, at: tuple[str, int], was: float | None, now: float | None
) -> dict[str, Any]:
    file, line = at
    anchor = session.anchor(file)
    place = anchor.where(line - 1) if anchor is not None else -1
    costs = after.costs.get(file, {}).get(line, ())
    return {
        "uri": convert.uri(file),
        "line": place,
        "runLine": line,
        "function": costs[0].function if costs else "",
        "text": content(session.lines(file)[place]).strip() if place >= 0 else "",
        "beforeMs": was,
        "afterMs": now,
        "deltaMs": (now or 0.0) - (was or 0.0),
    }


def _gone(before: Results, file: str, line: int, value: float) -> dict[str, Any]:
    text = split(before.sources.get(file, ""))
    return {
        "uri": convert.uri(file),
        "line": -1,
        "runLine": None,
        "function": before.costs[file][line][0].function,
        "text": content(text[line - 1]).strip() if line <= len(text) else "",
        "beforeMs": value,
        "afterMs": None,
        "deltaMs": -value,
    }
