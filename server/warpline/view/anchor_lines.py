"""What a run says of the lines of one file, as they are in the text now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpline.model.report import Line
from warpline.text.lines import content
from warpline.view.anchor import Anchor

_DEFINITION = re.compile(r"^(\s*)(?:async\s+)?(def|class)\s+(\w+)")

Costs = Mapping[int, tuple[Line, ...]]


@dataclass(frozen=True, slots=True)
class Standing:
    """One line with results: where it is now, and what it cost in the run."""

    line: int  # 0-based, in the text as it is now
    costs: tuple[Line, ...]  # more than one when several functions have code on the line
    stale: bool  # the line says something else than it did in the run

    @property
    def step_ms(self) -> float:
        """Milliseconds a step of all costs of the line."""
        return sum(cost.step_ms for cost in self.costs)


def costs_by_line(lines: Sequence[Line]) -> dict[str, dict[int, tuple[Line, ...]]]:
    """File -> 1-based line of the run -> its costs."""
    files: dict[str, dict[int, tuple[Line, ...]]] = {}
    for line in lines:
        place = files.setdefault(line.file, {})
        place[line.line] = (*place.get(line.line, ()), line)
    return files


def standing(costs: Costs, anchor: Anchor, first: int = 0, last: int | None = None) -> Iterator[Standing]:
    """The lines of ``costs`` that are between ``first`` and ``last`` (inclusive), in order."""
    for line, origin, stale in anchor.placed(first, len(anchor) - 1 if last is None else last):
        found = costs.get(origin + 1)
        if found:
            yield Standing(line, found, stale)


def at(costs: Costs, anchor: Anchor, line: int) -> Standing | None:
    """What the run says of the text's line ``line``; None where it says nothing."""
    found = costs.get(anchor.origin(line) + 1)
    return Standing(line, found, anchor.stale(line)) if found else None


def definitions(lines: Sequence[str]) -> dict[str, list[int]]:
    """Qualified names of functions (``Block.forward``, without ``<locals>``) to their 0-based def lines."""
    found: dict[str, list[int]] = {}
    scopes: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        match = _DEFINITION.match(content(line)) if "def " in line or "class " in line else None
        if match is None:
            continue
        indent = len(match[1].expandtabs())
        while scopes and scopes[-1][0] >= indent:
            scopes.pop()
        scopes.append((indent, match[3]))
        if match[2] == "def":
            found.setdefault(".".join(name for _, name in scopes), []).append(number)
    return found
