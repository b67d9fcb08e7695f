"""Over the file and its functions: what they cost in all, and how that changed since the run before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from warpline.model.report import Line
from warpline.text.lines import split
from warpline.view import change, units
from warpline.view.anchor_lines import definitions
from warpline.view.hints import share

#: Functions below this part of the step get no lens.
LEAST = 0.01


@dataclass(frozen=True, slots=True)
class Lens:
    line: int  # 0-based, in the run's source
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
    found: Iterable[Function],
    step_ms: float,
    before: Mapping[str, float] | None,
    noise: float | None = None,
) -> Iterator[Lens]:
    """One lens for each function that takes 1 % of the step at least, at its line of the run's source.
    ``before``: such totals of the run before; ``noise``: of the comparison with it."""
    for function in found:
        if function.step_ms >= LEAST * step_ms:
            then = None if before is None else before.get(function.name)
            words = f"{total_of(function.step_ms, step_ms)} in these lines"
            yield Lens(function.line, words + change.of_part(then, function.step_ms, noise))


def of_file(
    file_ms: float,
    step_ms: float,
    before_ms: float | None,
    noise: float | None = None,
    what: str = "file",
) -> str:
    """What stands over the whole file: ``52.4 ms a step (1.35x, was 70.7 ms)``."""
    words = f"{units.ms(step_ms)} a step"
    if before_ms is not None and change.is_change(before_ms, step_ms, noise):
        words += f" ({change.of_step(before_ms, step_ms, noise)}, was {units.ms(before_ms)})"
    return words if file_ms >= step_ms * 0.999 else f"{words}, {total_of(file_ms, step_ms)} in this {what}"


def total_of(total_ms: float, step_ms: float) -> str:
    """``12.4 ms · 38 %``."""
    return f"{units.ms(total_ms)} · {units.percent(share(total_ms, step_ms))}"
