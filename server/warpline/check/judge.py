"""Budgets and runs -> verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from warpline.check import places, reading
from warpline.check.budgets import Budgets, FunctionLimit, Limit, LineLimit
from warpline.check.places import Lines, Run
from warpline.check.reading import Reading
from warpline.model import units
from warpline.model.problem import Problem
from warpline.text.lines import lines_of
from warpline.view import compare, text

#: "unsure": over the limit, and by less than the noise. "unknown": the baseline does not have it.
Outcome = Literal["held", "exceeded", "unsure", "unknown"]
#: Gives the lines of a budget in one run; None: the whole step.
Find = Callable[[Run], Lines | None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One limit of one budget. ``limit_ms`` is the limit for the measured time, in milliseconds of a step;
    ``noise_ms`` half the width of the 95 % interval of the difference."""

    budget: str  # "step", "function Block.forward", "line train.py:31"
    limit: str  # as it was set: "at most 12.0 ms", "at most 5 % over the baseline"
    outcome: Outcome
    ms: float
    limit_ms: float | None
    noise_ms: float
    baseline_ms: float | None
    file: str
    line: int

    @property
    def message(self) -> str:
        """One sentence: what was measured, the limit, and why the outcome is uncertain if it is."""
        limit = self.limit
        if self.baseline_ms is not None and self.limit_ms is not None:
            limit += f" ({units.ms(self.limit_ms)})"
        said = f"{self.budget} takes {units.ms(self.ms)} of a step; its budget is {limit}"
        if self.outcome == "unsure":
            return f"{said}; the excess is less than the noise ({units.ms(self.noise_ms)})"
        if self.outcome == "unknown":
            return f"{said}, but the baseline does not have it"
        return said


def judge(budgets: Budgets, runs: Sequence[Run], baseline: Sequence[Run]) -> list[Verdict]:
    """Every limit of ``budgets``, of ``runs`` of the code as it is against ``baseline``, in the file's order.

    Raises Problem where a budget names what is not there, or is relative and no baseline was given.
    """
    found = []
    for name, limit, find in _all(budgets, runs[-1]):
        if limit.max_increase_percent is not None and not baseline:
            raise Problem(
                f"{name} has a relative limit: give a baseline with --against, or with baseline = in "
                "the budgets"
            )
        found += _verdicts(name, limit, find, (runs, baseline), budgets.noise_percent)
    return found


def _all(budgets: Budgets, run: Run) -> list[tuple[str, Limit, Find]]:
    found: list[tuple[str, Limit, Find]] = []
    if budgets.step is not None:
        found.append(("step", budgets.step, lambda run: None))
    for one in budgets.function:
        found.append((f"function {text.printable(one.name)}", one, _function(one)))
    for each in budgets.line:
        at = places.of_line(each, run)
        found.append((f"line {text.printable(each.file)}:{at.shown}", each, _line(each, run, at)))
    return found


def _function(limit: FunctionLimit) -> Find:
    return lambda run: places.of_function(limit, run)


def _line(limit: LineLimit, newest: Run, at: Lines) -> Find:
    """Finds the line of a limit in another run: by its text, also where it was edited in between."""

    def find(run: Run) -> Lines:
        if run is newest:
            return at
        file = places.file_called(limit.file, run)
        old, new = (lines_of(one.sources.get(path, "")) for one, path in ((run, file), (newest, at.file)))
        back = {after: before for before, (after, _) in compare.match(old, new).items()}
        numbers = frozenset(back[number] for number in at.numbers if number in back)
        if not numbers:
            raise Problem(f"{limit.file} has no such line in the baseline")
        return Lines(file, min(numbers), numbers)

    return find


def _verdicts(
    name: str, limit: Limit, find: Find, sides: tuple[Sequence[Run], Sequence[Run]], noise: float
) -> list[Verdict]:
    runs, baseline = sides
    lines = find(runs[-1])
    after = _reading(find, runs, noise)
    file, shown = (lines.file, lines.shown) if lines is not None else (runs[-1].report.script, 1)
    step = reading.mean_reading([run.report.steps.step_ms for run in runs], 0.0, 0.0).ms

    def verdict(
        said: str, most: float, before: Reading | None = None, factor: float = 1.0, of: Reading = after
    ) -> Verdict:
        held = Reading(before.ms, before.noise_ms * factor) if before is not None else None
        certain = reading.more_than(of, most, held)
        outcome: Outcome = "held" if of.ms <= most else "exceeded" if certain > 0 else "unsure"
        known = before.ms if before is not None else None
        return Verdict(name, said, outcome, of.ms, most, of.ms - most - certain, known, file, shown)

    found = []
    if limit.max_ms is not None:
        found.append(verdict(f"at most {units.ms(limit.max_ms)}", limit.max_ms))
    if limit.max_percent is not None:
        said = f"at most {units.percentage(limit.max_percent)} of the step"
        found.append(verdict(said, step * limit.max_percent / 100, of=_share(find, runs, step, noise)))
    if limit.max_increase_percent is not None:
        said = f"at most {units.percentage(limit.max_increase_percent)} over the baseline"
        factor = 1 + limit.max_increase_percent / 100
        try:
            before = _reading(find, baseline, noise)
        except Problem:
            found.append(Verdict(name, said, "unknown", after.ms, None, after.noise_ms, None, file, shown))
        else:
            found.append(verdict(said, before.ms * factor, before, factor))
    return found


def _reading(find: Find, runs: Sequence[Run], noise_percent: float) -> Reading:
    """The noise of lines in a single run is taken from its step's: variances add up like durations, as they
    do when each moment's noise is its own."""
    values = [_ms(find, run) for run in runs]
    whole = runs[-1].report.steps.step_ms
    alone = reading.of_steps(runs[-1].timed_ns) * math.sqrt(min(1.0, values[-1] / whole) if whole else 1.0)
    return reading.mean_reading(values, alone, noise_percent)


def _share(find: Find, runs: Sequence[Run], step_ms: float, noise_percent: float) -> Reading:
    """Shares of each run's own step, as parts of ``step_ms``: what makes a whole run slow is not in them."""
    shares = [_ms(find, run) / run.report.steps.step_ms if run.report.steps.step_ms else 0.0 for run in runs]
    found = reading.mean_reading(shares, 0.0, noise_percent)
    return Reading(found.ms * step_ms, found.noise_ms * step_ms)


def _ms(find: Find, run: Run) -> float:
    lines = find(run)
    return run.report.steps.step_ms if lines is None else lines.ms(run)
