"""A kernel from the inside, beside its source lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpline.model.kernel import KernelInside, KernelLine
from warpline.view import text, units

_MOST_STALLS = 2
_SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class KernelRow:
    place: str  # "slow.py:26"
    source: str
    memory: str  # "4 of 32 bytes used of each sector (12 %)"; "" without global memory
    stalls: str  # "long scoreboard 61 %"


@dataclass(frozen=True, slots=True)
class KernelTable:
    summary: tuple[str, ...]
    rows: tuple[KernelRow, ...]
    advice: tuple[str, ...]


def kernel_table(inside: KernelInside, texts: Callable[[str], str | None]) -> KernelTable:
    """``texts`` gives a file's text, or None where it is not there."""
    samples = sum(sum(line.stalls.values()) for line in inside.lines)
    names = text.names({line.file for line in inside.lines}, "")
    shares = (
        ("compute", inside.compute_percent),
        ("memory", inside.memory_percent),
        ("occupancy", inside.occupancy_percent),
    )
    known = "; ".join(f"{name} {units.percentage(value)}" for name, value in shares if value is not None)
    return KernelTable(
        summary=(
            text.printable(f"{inside.name}: {units.ms(inside.duration_ms)} on {inside.device}"),
            f"of peak: {known}" if known else "",
        ),
        rows=tuple(
            KernelRow(
                place=f"{names[line.file]}:{line.line}",
                source=_source(texts(line.file), line.line),
                memory=_memory(line),
                stalls=_stalls(line, samples),
            )
            for line in inside.lines
        ),
        advice=tuple(f"{text.printable(name)}: {text.printable(said)}" for name, said in inside.advice),
    )


def _source(written: str | None, line: int) -> str:
    lines = text.lines(written or "")
    return text.printable(lines[line - 1].strip()) if 0 < line <= len(lines) else ""


def _memory(line: KernelLine) -> str:
    used = line.used_percent
    if used is None:
        return ""
    of_sector = units.count(_SECTOR_BYTES * used / 100)
    return f"{of_sector} of {_SECTOR_BYTES} bytes used of each sector ({units.percentage(used)})"


def _stalls(line: KernelLine, samples: float) -> str:
    """Where warps waited, as shares of all samples of the kernel."""
    ordered = sorted(line.stalls.items(), key=lambda item: -item[1])[:_MOST_STALLS]
    words = (f"{name.replace('_', ' ')} {units.percent(count / samples)}" for name, count in ordered)
    return ", ".join(words) if samples else ""
