"""Over the file and its functions: what they cost in all, and how that changed since the run before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from warpline.model.report import Line
from warpline.view import units
from warpline.view.anchor import Anchor
from warpline.view.anchor_lines import definitions
from warpline.view.anchor_text import split
from warpline.view.hints import share

#: A smaller change is noise, and not shown.
_NOTICED = 0.02


@dataclass(frozen=True, slots=True)
class Lens:
    line: int  # 0-based, in the text as it is now
    text: str


@dataclass(frozen=True, slots=True)
class Function:
    name: str  # qualified, without ``<locals>``
    line: int  # 0-based line of its ``def`` in the run's source
    step_ms: float


def function_totals(lines: Iterable[Line]) -> dict[tuple[str, str], float]:
    """(file, qualified function) to its lines' time in the step."""
    totals: dict[tuple[str, str], float] = {}
    for line in lines:
        name = (line.file, line.function.replace(".<locals>", ""))
        totals[name] = totals.get(name, 0.0) + line.step_ms
    return totals


def functions(lines: Iterable[Line], source: str) -> tuple[Function, ...]:
    """The functions of one file with time of their own. ``source``: its text in the run."""
    first: dict[str, int] = {}
    totals: dict[str, float] = {}
    for line in lines:
        name = line.function.replace(".<locals>", "")
        totals[name] = totals.get(name, 0.0) + line.step_ms
        first[name] = min(first.get(name, line.line), line.line)
    places = definitions(split(source)) if totals else {}
    found = []
    for name, total in totals.items():
        # Of several definitions with one name, the last one above the measured lines.
        above = [at for at in places.get(name, ()) if at < first[name]]
        if above and total > 0:
            found.append(Function(name, above[-1], total))
    return tuple(found)


def of_functions(
    found: Iterable[Function], anchor: Anchor, step_ms: float, before: Mapping[str, float] | None
) -> Iterator[Lens]:
    """One lens over each function that still stands. ``before``: such totals of the run before."""
    for function in found:
        line = anchor.where(function.line)
        if line >= 0:
            then = None if before is None else before.get(function.name)
            yield Lens(line, total_of(function.step_ms, step_ms, then))


def of_file(file_ms: float, step_ms: float, before_ms: float | None) -> str:
    """What stands over the whole file."""
    if file_ms >= step_ms * 0.999:
        return f"{units.ms(step_ms)} a step{_change(step_ms, before_ms)}"
    return f"{total_of(file_ms, step_ms, None)} of a {units.ms(step_ms)} step{_change(step_ms, before_ms)}"


def total_of(total_ms: float, step_ms: float, before_ms: float | None) -> str:
    """``12.4 ms · 38 %`` and, when it changed, `` · 1.3 ms less than before``."""
    words = f"{units.ms(total_ms)} · {units.percent(share(total_ms, step_ms))}"
    return words + _change(total_ms, before_ms)


def _change(now_ms: float, before_ms: float | None) -> str:
    if before_ms is None or abs(now_ms - before_ms) < _NOTICED * max(now_ms, before_ms):
        return ""
    more = "more" if now_ms > before_ms else "less"
    return f" · {units.ms(abs(now_ms - before_ms))} {more} than before"
