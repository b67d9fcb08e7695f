"""The plan in words: what bounds the step now, each fix after those before it, and the floor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpline.model.report import Plan, Resource
from warpline.view import units

#: What bounds a step, said of it.
LIMITS: dict[Resource, str] = {
    "loader": "the data loader",
    "host": "Python on the host",
    "launches": "launching operators",
    "memory": "memory bandwidth",
    "compute": "matrix products",
    "communication": "communication between ranks",
}


@dataclass(frozen=True, slots=True)
class Row:
    step: str
    gain: str
    limit: str
    what: str


def rows(plan: Plan) -> list[Row]:
    """One for the step as it is, one for each fix, one for the floor."""
    found = [Row(units.ms(plan.step_ms), "", LIMITS[plan.limit], "no change")]
    for one in plan.steps:
        what = f"{one.rule} ({Path(one.file).name}:{one.line}): {one.title}"
        found.append(Row(units.ms(one.step_ms), units.gain(one.speedup), LIMITS[one.limit], what))
    return [
        *found,
        Row(units.ms(plan.floor_ms), "", "", ("the floor: the minimum time of the device's work")),
    ]


def summary(plan: Plan) -> str:
    """``204 ms now; loader-without-workers: 101 ms; fp32-matmul: 48 ms; floor: 30 ms``."""
    parts = [f"{units.ms(plan.step_ms)} now", *(f"{one.rule}: {units.ms(one.step_ms)}" for one in plan.steps)]
    return "; ".join([*parts, f"floor: {units.ms(plan.floor_ms)}"])
