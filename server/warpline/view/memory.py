"""The report by memory: which lines hold it at the step's peak, and which keep what they allocate."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.devices import can
from warpline.model.profile import LineCost, Profile
from warpline.text.lines import line_at
from warpline.view import text, units

_MOST = 30
#: Lines that hold less than this share of what lines hold, and keep nothing, are left out.
_LEAST_SHARE = 0.002
#: Kept in a step, below which a line is not said to keep something: a list's own growth, a counter.
_LEAST_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Holder:
    place: str
    held_bytes: int  # at the step's peak
    share: float  # of what all lines hold at the peak, 0..1
    kept_bytes: float  # a step; 0 where what is allocated is freed again
    source: str


@dataclass(frozen=True, slots=True)
class Holders:
    title: str
    rows: tuple[Holder, ...]
    rest: str  # what is not shown; "" where nothing is left
    said: tuple[str, ...]  # which line keeps the most, and what is not known


def holders(profile: Profile, top: int | None = None, cwd: str = "") -> Holders:
    """``top``: how many lines, else those that matter."""
    lines = [cost for cost in profile.lines if cost.memory_bytes > 0 or cost.kept_bytes >= _LEAST_KEPT]
    lines.sort(key=lambda cost: (-cost.memory_bytes, -cost.kept_bytes, cost.file, cost.line))
    named = {cost.file for cost in lines} | {cost.file for cost in profile.lines if cost.allocator_ms}
    names = text.names(named, cwd)
    whole = sum(cost.memory_bytes for cost in lines)
    shown = [
        cost for cost in lines if cost.kept_bytes >= _LEAST_KEPT or cost.memory_bytes >= _LEAST_SHARE * whole
    ][:_MOST]
    shown = lines[:top] if top is not None else shown
    rows = tuple(
        Holder(
            f"{names[cost.file]}:{cost.line}",
            cost.memory_bytes,
            cost.memory_bytes / whole if whole else 0.0,
            cost.kept_bytes if cost.kept_bytes >= _LEAST_KEPT else 0.0,
            line_at(profile.sources.get(cost.file), cost.line).strip(),
        )
        for cost in shown
    )
    left = whole - sum(row.held_bytes for row in rows)
    more = len(lines) - len(rows)
    rest = f"{more} more {'line' if more == 1 else 'lines'}: {units.size(left)}" if more else ""
    title = f"memory at the step's peak, by line: {units.size(whole)}"
    return Holders(title, rows, rest, tuple(_said(profile, lines, names, whole)))


def _asked_driver(profile: Profile, names: dict[str, str]) -> str:
    calls, ms = profile.totals["allocator_calls"], profile.totals["allocator_ms"]
    most = max(profile.lines, key=lambda cost: cost.allocator_ms, default=None)
    where = f", most of it at {names[most.file]}:{most.line}" if most and most.allocator_ms else ""
    return (
        f"the allocator called the driver {units.count(calls)} times a step (cudaMalloc, cudaFree, "
        f"cudaHostAlloc): {units.ms(ms)} of host time{where}"
    )


def _said(profile: Profile, lines: list[LineCost], names: dict[str, str], whole: int) -> list[str]:
    """Notes below the table: kept memory, allocator calls, growth."""
    said = []
    facts = profile.facts.memory
    most = max(lines, key=lambda cost: cost.kept_bytes, default=None)
    if most is not None and most.kept_bytes >= _LEAST_KEPT:
        said.append(
            f"{names[most.file]}:{most.line} keeps {units.size(most.kept_bytes)} a step: allocated "
            "there and not freed during the captured steps"
        )
    if profile.totals.get("allocator_calls", 0.0) > 0:
        said.append(_asked_driver(profile, names))
    if facts.growth_bytes_per_step is not None:
        what = "allocated on the device" if _on_gpu(profile) else "resident memory of the process"
        grown = units.size(abs(facts.growth_bytes_per_step))
        more = f"{grown} less" if facts.growth_bytes_per_step < 0 else f"{grown} more"
        said.append(f"{what} over the timed steps: {more} after each (peak {_peak(profile)})")
    if _on_gpu(profile):
        before = profile.totals.get("peak_bytes", 0.0) - whole
        if before > 0:
            said.append(f"no line: {units.size(before)} at the peak, allocated before the captured steps")
    elif lines:
        said.append(
            "memory allocated before the captured steps (parameters, data, tensors of earlier "
            "steps) has no line"
        )
    return said


def _peak(profile: Profile) -> str:
    peak = profile.facts.memory.peak_bytes
    return units.size(peak) if peak is not None else "unknown"


def _on_gpu(profile: Profile) -> bool:
    return can(profile.manifest.device.kind, "kernels")
