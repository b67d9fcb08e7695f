"""Code lenses: the total cost of a file and its functions, and the change since the previous run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from warpline.model import report
from warpline.model.report import Line
from warpline.text.lines import split
from warpline.view import change, units
from warpline.view.anchor_lines import definitions
from warpline.view.hints import share

#: Functions below this part of the step get no lens.
LEAST = 0.01
#: A function's calls are shown from this share of the step on.
CALLED = 0.001


@dataclass(frozen=True, slots=True)
class Lens:
    line: int  # 0-based, in the run's source
    text: str


@dataclass(frozen=True, slots=True)
class Function:
    name: str  # qualified, without ``<locals>``
    line: int  # 0-based line of its ``def`` in the run's source
    step_ms: float  # of its own lines
    total_ms: float | None = None  # with the functions that it calls; None: not known


def function_totals(lines: Iterable[Line]) -> dict[tuple[str, str], float]:
    """(file, qualified function) to its lines' time in the step."""
    totals: dict[tuple[str, str], float] = {}
    for line in lines:
        name = (line.file, line.function.replace(".<locals>", ""))
        totals[name] = totals.get(name, 0.0) + line.step_ms
    return totals


def totals_of(known: Iterable[report.Function]) -> dict[tuple[str, str], float]:
    """(file, qualified function) to what it takes with the functions that it calls."""
    found: dict[tuple[str, str], float] = {}
    for one in known:
        name = (one.file, one.function.replace(".<locals>", ""))
        found[name] = found.get(name, 0.0) + one.total_ms
    return found


def functions(
    lines: Iterable[Line], source: str, with_called: Mapping[str, float] | None = None
) -> tuple[Function, ...]:
    """The functions of one file with time of their own. ``source``: its text in the run; ``with_called``:
    by qualified function, what it takes with the functions that it calls."""
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
            found.append(Function(name, above[-1], total, (with_called or {}).get(name)))
    return tuple(found)


def of_functions(
    functions: Iterable[Function],
    step_ms: float,
    before: Mapping[str, float] | None,
    noise: float | None = None,
) -> Iterator[Lens]:
    """One lens for each function that takes 1 % of the step at least, with what it calls or alone, at its
    line of the run's source. ``before``: what each one's own lines took in the run before; ``noise``: of
    the comparison with it."""
    for function in functions:
        if max(function.step_ms, function.total_ms or 0.0) >= LEAST * step_ms:
            then = None if before is None else before.get(function.name)
            words = self_and_total(function.step_ms, function.total_ms, step_ms)
            yield Lens(function.line, words + change.of_part(then, function.step_ms, noise))


def self_and_total(own_ms: float, total_ms: float | None, step_ms: float) -> str:
    """``total 38.2 ms · 74 %, self 12.4 ms · 24 %``; only the latter of a function that calls no other."""
    own = f"self {total_of(own_ms, step_ms)}"
    calls_others = total_ms is not None and total_ms - own_ms >= CALLED * step_ms
    return f"total {total_of(total_ms or 0.0, step_ms)}, {own}" if calls_others else own


def of_file(
    file_ms: float,
    step_ms: float,
    before_ms: float | None,
    noise: float | None = None,
    what: str = "file",
) -> str:
    """What is over the whole file: ``52.4 ms a step (1.35x, was 70.7 ms)``."""
    words = f"{units.ms(step_ms)} a step"
    if before_ms is not None and change.is_change(before_ms, step_ms, noise):
        words += f" ({change.of_step(before_ms, step_ms, noise)}, was {units.ms(before_ms)})"
    all_or_nothing = file_ms >= step_ms * 0.999 or file_ms <= 0
    return words if all_or_nothing else f"{words}, {total_of(file_ms, step_ms)} in this {what}"


def total_of(total_ms: float, step_ms: float) -> str:
    """``12.4 ms · 38 %``."""
    return f"{units.ms(total_ms)} · {units.percent(share(total_ms, step_ms))}"
