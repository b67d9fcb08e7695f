"""A kernel from the inside, beside its source lines."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.model.kernel import KernelInside, KernelLine
from warpline.view import text, units

_MOST_STALLS = 2
#: Of all samples of the kernel; what is rarer is not a reason to change a line.
_LEAST_SHARE = 0.005
_SECTOR_BYTES = 32
#: What is known of the whole kernel, in percent, and what it is called.
SHARES = (("compute", "compute_percent"), ("memory", "memory_percent"), ("occupancy", "occupancy_percent"))


@dataclass(frozen=True, slots=True)
class KernelRow:
    place: str  # "slow.py:26"
    source: str
    memory: str  # "4 of 32 bytes (12 %)"; "" without global memory
    stalls: str  # "long scoreboard 61 %"


@dataclass(frozen=True, slots=True)
class KernelTable:
    summary: tuple[str, ...]
    rows: tuple[KernelRow, ...]
    advice: tuple[str, ...]


def kernel_table(inside: KernelInside) -> KernelTable:
    """Counters of a kernel: a summary and one row per source line."""
    samples = all_samples(inside)
    names = text.names({line.file for line in inside.lines}, "")
    shares = tuple((name, getattr(inside, field)) for name, field in SHARES)
    known = "; ".join(f"{name} {units.percentage(value)}" for name, value in shares if value is not None)
    return KernelTable(
        summary=(
            text.printable(f"{inside.name}: {units.ms(inside.duration_ms)} on {inside.device}"),
            f"of peak: {known}" if known else "",
        ),
        rows=tuple(
            KernelRow(
                place=f"{names[line.file]}:{line.line}",
                source=text.printable(line.text),
                memory=bytes_used(line),
                stalls=waiting(line, samples),
            )
            for line in inside.lines
        ),
        advice=tuple(f"{text.printable(name)}: {text.printable(said)}" for name, said in inside.advice),
    )


def all_samples(inside: KernelInside) -> float:
    """How many samples Nsight Compute took in the kernel."""
    return sum(sum(line.stalls.values()) for line in inside.lines)


def bytes_used(line: KernelLine) -> str:
    """``4 of 32 bytes (12 %)``; empty without global memory."""
    used = line.used_percent
    if used is None:
        return ""
    of_sector = units.count(_SECTOR_BYTES * used / 100)
    return f"{of_sector} of {_SECTOR_BYTES} bytes ({units.percentage(used)})"


def waiting(line: KernelLine, samples: float, most: int = _MOST_STALLS) -> str:
    """Where warps waited, as shares of all samples of the kernel."""
    worth = [(name, count) for name, count in line.stalls.items() if count >= _LEAST_SHARE * samples]
    ordered = sorted(worth, key=lambda item: -item[1])[:most]
    return ", ".join(f"{name.replace('_', ' ')} {units.percent(count / samples)}" for name, count in ordered)


def words_by_line(inside: KernelInside) -> dict[tuple[str, int], str]:
    """What is known of each line of the kernel, in a sentence; by file and line."""
    samples, table = all_samples(inside), kernel_table(inside)
    found = {}
    for line in inside.lines:
        memory, stalls = bytes_used(line), waiting(line, samples)
        parts = (
            f"{memory} used of each transferred sector" if memory else "",
            f"stalled warps here, of all samples: {stalls}" if stalls else "",
        )
        if any(parts):
            said = "; ".join(filter(None, parts))
            found[line.file, line.line] = f"Nsight Compute, {table.summary[0]}: {said}"
    return found
