"""Two runs side by side, line by line, also when the files changed between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from warpline.model.report import Report
from warpline.text.alignment import align
from warpline.text.lines import key, lines_of
from warpline.view import text, units

Change = Literal["same", "edited", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Pair:
    """One line in both runs. A line that is in one text only has None on the other side."""

    before: tuple[str, int] | None  # (path, line)
    after: tuple[str, int] | None
    before_ms: float  # its part of the step; 0 where it cost nothing
    after_ms: float
    change: Change  # of its text
    source: str  # as it is after, or was before where it is gone

    @property
    def difference_ms(self) -> float:
        """Milliseconds a step that the line takes more than before; negative where it takes less."""
        return self.after_ms - self.before_ms


@dataclass(frozen=True, slots=True)
class Comparison:
    summary: tuple[str, ...]
    pairs: tuple[Pair, ...]  # by the size of the difference, largest first
    unattributed: tuple[float, float]  # ms before and after
    names: Mapping[str, str]
    notes: tuple[str, ...]  # why the two may not be comparable


def compare(
    before: Report, after: Report, before_sources: Mapping[str, str], after_sources: Mapping[str, str]
) -> Comparison:
    """The pairs and the difference in ``unattributed`` add up to the difference of the steps."""
    files = _same_files(before, after)
    costs_before, costs_after = _costs(before), _costs(after)
    pairs: list[Pair] = []
    for old, new in files:
        old_text = lines_of(before_sources.get(old, "")) if old else []
        new_text = lines_of(after_sources.get(new, "")) if new else []
        old_costs, new_costs = costs_before.pop(old, {}), costs_after.pop(new, {})
        if not any(old_text) or not any(new_text):
            matched = _numbers_alone(old_costs, new_costs) if old and new else {}
        else:
            matched = match(old_text, new_text)
        pairs += _pairs((old, old_text, old_costs), (new, new_text, new_costs), matched)
    pairs.sort(key=lambda p: (-abs(p.difference_ms), -p.after_ms, p.after or ("", 0), p.before or ("", 0)))
    paths = {path for pair in files for path in pair if path}
    return Comparison(
        summary=_summary(before, after),
        pairs=tuple(pairs),
        unattributed=(before.unattributed.step_ms, after.unattributed.step_ms),
        names=text.names(paths, ""),
        notes=_notes(before, after),
    )


def match(old: list[str], new: list[str]) -> dict[int, tuple[int, bool]]:
    """Old line number to ``(new line number, edited)``; lines without a counterpart are absent.

    White space and trailing comments do not count, so a block put under a ``with`` keeps its lines.
    """
    before, after = [key(line) for line in old], [key(line) for line in new]
    pairs = sorted((i, j) for j, i in enumerate(align(before, after)) if i >= 0)
    return {i + 1: (j + 1, before[i] != after[j]) for i, j in pairs}


def _costs(report: Report) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for line in report.lines:
        of_file = found.setdefault(line.file, {})
        of_file[line.line] = of_file.get(line.line, 0.0) + line.step_ms
    return found


def _same_files(before: Report, after: Report) -> list[tuple[str, str]]:
    """Pairs of paths, ``""`` where there is none: the same path, the two scripts, the same name."""
    old = {line.file for line in before.lines}
    new = {line.file for line in after.lines}
    pairs = [(path, path) for path in sorted(old & new)]
    old, new = old - new, new - old
    if before.script in old and after.script in new:
        pairs.append((before.script, after.script))
        old, new = old - {before.script}, new - {after.script}
    for path in sorted(old):
        twins = [other for other in sorted(new) if Path(other).name == Path(path).name]
        pairs.append((path, twins[0] if twins else ""))
        new -= set(twins[:1])
    return pairs + [("", path) for path in sorted(new)]


_Side = tuple[str, list[str], dict[int, float]]


def _pairs(old: _Side, new: _Side, matched: Mapping[int, tuple[int, bool]]) -> Iterable[Pair]:
    """Lines of two versions of a file, matched; None on one side for added or removed lines."""
    old_path, old_text, old_costs = old
    new_path, new_text, new_costs = new
    back = {after: before for before, (after, _) in matched.items()}
    for line, cost in old_costs.items():
        if line in matched:
            after, edited = matched[line]
            yield Pair(
                (old_path, line),
                (new_path, after),
                cost,
                new_costs.get(after, 0.0),
                "edited" if edited else "same",
                _words(new_text, after),
            )
        else:
            yield Pair((old_path, line), None, cost, 0.0, "removed", _words(old_text, line))
    for line, cost in new_costs.items():
        if line not in back:
            yield Pair(None, (new_path, line), 0.0, cost, "added", _words(new_text, line))
        elif back[line] not in old_costs:
            change: Change = "edited" if matched[back[line]][1] else "same"
            place = (old_path, back[line])
            yield Pair(place, (new_path, line), 0.0, cost, change, _words(new_text, line))


def _numbers_alone(old: Mapping[int, float], new: Mapping[int, float]) -> dict[int, tuple[int, bool]]:
    return {line: (line, False) for line in {*old, *new}}


def _words(written: list[str], line: int) -> str:
    return text.printable(written[line - 1].strip()) if 0 < line <= len(written) else ""


def _summary(before: Report, after: Report) -> tuple[str, ...]:
    old, new = before.steps.step_ms, after.steps.step_ms
    gain = f": {units.gain(old / new)}" if new else ""
    return (
        f"{units.ms(old)} a step before, {units.ms(new)} after{gain}",
        f"device busy {units.percentage(before.steps.device_busy_percent)} before, "
        f"{units.percentage(after.steps.device_busy_percent)} after",
    )


def _notes(before: Report, after: Report) -> tuple[str, ...]:
    pairs = (
        ("scripts", before.script, after.script),
        ("device", before.environment.device.name, after.environment.device.name),
        ("torch", before.environment.torch, after.environment.torch),
        ("Python", before.environment.python, after.environment.python),
        ("arguments", " ".join(before.argv), " ".join(after.argv)),
    )
    return tuple(
        text.printable(f"different {what}: {old or 'none'} before, {new or 'none'} after")
        for what, old, new in pairs
        if old != new
    )
