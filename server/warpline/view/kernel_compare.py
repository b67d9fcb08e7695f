"""Two versions of a kernel side by side: figure by figure, and line by line also where the code changed."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.model.kernel import KernelInside, KernelLine
from warpline.view import text, units
from warpline.view.compare import match
from warpline.view.kernel import SHARES, all_samples, waiting


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of both kernels as words; ``change`` is empty where there is nothing to compare."""

    name: str
    before: str
    after: str
    change: str = ""


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One line in both kernels, or in one: the other side's words are then empty."""

    place: str  # "slow.py:26", or "slow.py:26 > tiled.py:24"
    source: str  # as it is after, or was before where it is gone
    memory: tuple[str, str]  # bytes used of the bytes moved: "12 %"
    stalls: tuple[str, str]  # what warps wait for most: "lg throttle 80 %"


@dataclass(frozen=True, slots=True)
class KernelComparison:
    summary: str
    figures: tuple[Figure, ...]
    lines: tuple[ComparedLine, ...]
    notes: tuple[str, ...]


def compare_kernels(before: KernelInside, after: KernelInside) -> KernelComparison:
    """Lines are paired by their text, in order; those of one kernel alone are where they are in it."""
    gain = f": {units.gain(before.duration_ms / after.duration_ms)}" if after.duration_ms else ""
    notes = []
    if before.device != after.device:
        notes.append(text.printable(f"different devices: {before.device} before, {after.device} after"))
    return KernelComparison(
        summary=text.printable(
            f"{before.name} {units.ms(before.duration_ms)} before, "
            f"{after.name} {units.ms(after.duration_ms)} after{gain}"
        ),
        figures=tuple(_figures(before, after)),
        lines=tuple(_lines(before, after)),
        notes=tuple(notes),
    )


def _figures(before: KernelInside, after: KernelInside) -> list[Figure]:
    found = [Figure("duration", units.ms(before.duration_ms), units.ms(after.duration_ms))]
    for name, field in SHARES:
        old, new = getattr(before, field), getattr(after, field)
        if old is not None or new is not None:
            known = old is not None and new is not None
            change = f"{new - old:+.1f} points" if known else ""
            found.append(Figure(f"{name}, of peak", _percentage(old), _percentage(new), change))
    old, new = (sum(line.sectors for line in side.lines) for side in (before, after))
    if old and new:
        change = f"{units.count(old / new)} times fewer" if old > new else ""
        found.append(Figure("sectors of memory touched", units.count(old), units.count(new), change))
    old, new = all_samples(before), all_samples(after)
    if old and new:
        found.append(Figure("samples of waiting warps", units.count(old), units.count(new)))
    return found


def _percentage(value: float | None) -> str:
    return units.percentage(value) if value is not None else ""


def _used(line: KernelLine | None) -> str:
    return _percentage(line.used_percent) if line is not None else ""


def _waiting(line: KernelLine | None, samples: float) -> str:
    return waiting(line, samples, most=1) if line is not None else ""


def _lines(before: KernelInside, after: KernelInside) -> list[ComparedLine]:
    matched = match([line.text for line in before.lines], [line.text for line in after.lines])
    before_of = {new: old for old, (new, _) in matched.items()}
    gone = [number for number in range(1, len(before.lines) + 1) if number not in matched]
    pairs: list[tuple[KernelLine | None, KernelLine | None]] = []
    for number, line in enumerate(after.lines, 1):
        old = before_of.get(number, 0)
        while gone and gone[0] < old:
            pairs.append((before.lines[gone.pop(0) - 1], None))
        pairs.append((before.lines[old - 1] if old else None, line))
    pairs += [(before.lines[number - 1], None) for number in gone]
    names = text.names({line.file for side in (before, after) for line in side.lines}, "")
    samples = all_samples(before), all_samples(after)

    def row(old: KernelLine | None, new: KernelLine | None) -> ComparedLine:
        places = [f"{names[line.file]}:{line.line}" for line in (old, new) if line is not None]
        shown = new or old
        return ComparedLine(
            place=" > ".join(dict.fromkeys(places)),
            source=text.printable(shown.text) if shown is not None else "",
            memory=(_used(old), _used(new)),
            stalls=(_waiting(old, samples[0]), _waiting(new, samples[1])),
        )

    return [row(old, new) for old, new in pairs]
