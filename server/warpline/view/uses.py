"""The report by operator or by kernel: the same names of all lines added up, the longest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from warpline.model.kernel_name import readable
from warpline.model.profile import Profile
from warpline.view import text, units

By = Literal["operator", "kernel"]

_MOST = 30
#: Names below this share of the device time are left out, unless --top asks for more.
_LEAST_SHARE = 0.002


@dataclass(frozen=True, slots=True)
class Use:
    """One name. Times in milliseconds of a step; ``share`` is of all device time, 0..1."""

    name: str
    device_ms: float
    share: float
    count: float  # a step
    backward_ms: float  # part of device_ms that is backward or recomputation
    cpu_ms: float | None  # of operators: host time, callees included
    places: tuple[str, ...]  # where the most of it comes from


@dataclass(frozen=True, slots=True)
class Uses:
    title: str
    rows: tuple[Use, ...]
    rest: str  # what is not shown; "" where nothing is left


@dataclass(slots=True)
class _Sum:
    device_ms: float = 0.0
    count: float = 0.0
    backward_ms: float = 0.0
    cpu_ms: float = 0.0


def uses(profile: Profile, by: By, top: int | None = None, cwd: str = "") -> Uses:
    """One row per operator or kernel name, added up over lines, the longest device time first."""
    names = text.names({line.file for line in profile.lines}, cwd)
    sums: dict[str, _Sum] = {}
    at: dict[str, dict[str, float]] = {}
    for place, name, device_ms, count, backward, cpu_ms in _all(profile, by):
        row = sums.setdefault(name, _Sum())
        row.device_ms += device_ms
        row.count += count
        row.backward_ms += device_ms if backward else 0.0
        row.cpu_ms += cpu_ms
        where = f"{names[place[0]]}:{place[1]}" if place[1] else "no line"
        places = at.setdefault(name, {})
        places[where] = places.get(where, 0.0) + device_ms
    whole = profile.totals.get("device_ms", 0.0) or sum(row.device_ms for row in sums.values())
    ordered = sorted(sums, key=lambda name: (-sums[name].device_ms, -sums[name].count, name))
    most = [name for name in ordered[:_MOST] if sums[name].device_ms >= _LEAST_SHARE * whole]
    chosen = ordered[:top] if top is not None else most
    rows = tuple(
        Use(
            readable(name) if by == "kernel" else name,
            row.device_ms,
            row.device_ms / whole if whole else 0.0,
            row.count,
            row.backward_ms,
            row.cpu_ms if by == "operator" else None,
            tuple(sorted(at[name], key=lambda place: -at[name][place])[:3]),
        )
        for name, row in ((name, sums[name]) for name in chosen)
    )
    left = len(ordered) - len(chosen)
    rest_ms = whole - sum(row.device_ms for row in rows)
    share = units.percent(rest_ms / whole) if whole else "0 %"
    said = f"{left} more: {units.ms(max(0.0, rest_ms))} ({share} of the device time)" if left else ""
    return Uses(f"device time {units.ms(whole)} a step, by {by}", rows, said)


def _all(profile: Profile, by: By) -> Iterator[tuple[tuple[str, int], str, float, float, bool, float]]:
    """Place, name, device time, count, whether it is backward, host time: of each line, then of none."""
    for line in profile.lines:
        place = line.file, line.line
        if by == "kernel":
            for one in line.kernels:
                yield place, one.name, one.device_ms, one.count, one.phase != "forward", 0.0
        else:
            for op in line.ops:
                yield place, op.name, op.device_ms, op.count, op.phase != "forward", op.cpu_ms
    nowhere = ("", 0)
    if by == "kernel":
        for one in profile.unattributed_kernels:
            yield nowhere, one.name, one.device_ms, one.count, one.phase != "forward", 0.0
    else:
        for op in profile.unattributed_ops:
            yield nowhere, op.name, op.device_ms, op.count, op.phase != "forward", op.cpu_ms
