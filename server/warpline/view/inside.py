"""The parts of a line that calls a library: the model's modules and the library's functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warpline.model.report import Inside, Line
from warpline.view.text import printable

#: Beneath a line are at most so many parts, each with at least this share of the step.
MOST = 6
LEAST_SHARE = 0.02
#: The same outside of all modules, where no name of a module says what took the time. Chosen, not fitted.
LEAST_OUTSIDE = 0.005


@dataclass(frozen=True, slots=True)
class Part:
    """A module and its lines, longest first. Outside of all modules: a named part, or a function."""

    name: str
    place: str  # "modeling_bert.py:348", where its costliest line is
    step_ms: float
    device_ms: float
    lines: tuple[Inside, ...]

    def total(self, field: str) -> float:
        """The sum of a field of the lines, such as ``backward_ms``; 0 for one that they do not have."""
        return float(sum(getattr(line, field, 0.0) for line in self.lines))


@dataclass(frozen=True, slots=True)
class Caller:
    """A line of the user's, and what of its time a library's line takes. ``module``: see ``Inside``."""

    module: str | None
    file: str
    line: int
    step_ms: float


def parts(inside: Iterable[Inside]) -> tuple[Part, ...]:
    """``inside`` added up by module; where there is none by what ran there, else by function; longest
    first."""
    found: dict[tuple[str, str], list[Inside]] = {}
    for entry in inside:
        name = entry.module or entry.part
        key = (name, "") if name else (entry.function, entry.file)
        found.setdefault(key, []).append(entry)
    made = [
        Part(
            printable(name),
            place(lines[0]),
            sum(line.step_ms for line in lines),
            sum(line.device_ms for line in lines),
            tuple(lines),
        )
        for (name, _), lines in found.items()
    ]
    return tuple(sorted(made, key=lambda part: -part.step_ms))


def largest(costs: Iterable[Line], step_ms: float) -> tuple[Part, ...]:
    """The few parts worth a look beneath a line with these costs. What the line takes itself is no part: a
    library calls it, as accelerate calls the user's ``forward``."""
    inside = (each for one in costs for each in one.inside if (each.file, each.line) != (one.file, one.line))
    return tuple(part for part in parts(inside)[:MOST] if part.step_ms >= LEAST_SHARE * step_ms)


def outside(inside: Iterable[Inside], step_ms: float) -> tuple[Part, ...]:
    """The named parts outside of all modules, longest first: the optimizer, copies of the batch."""
    named = parts(entry for entry in inside if entry.part)
    return tuple(part for part in named if part.step_ms >= LEAST_OUTSIDE * step_ms)


def place(entry: Inside) -> str:
    """File name and line. Paths of installed packages are long, and a name is enough to go by."""
    return f"{printable(entry.file.replace(chr(92), '/').rpartition('/')[2])}:{entry.line}"
