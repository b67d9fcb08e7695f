"""The output of ``warpline fix --measure --json`` and ``warpline tune --json`` (contract.md, format 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpline.measure.candidate import Texts
from warpline.measure.contest import Outcome
from warpline.measure.verdict import ONCE
from warpline.model.report import FORMAT
from warpline.text import patch


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate. Its numbers are None if it could not be timed. The speed-up and its bounds are also None
    if it was timed only once, which gives no interval. ``high`` is None if it is unbounded."""

    fixes: tuple[str, ...]
    step_ms: float | None
    speedup: float | None
    low: float | None
    high: float | None
    loss_drift: float | None
    memory_ratio: float | None
    kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Best:
    """The best proven set. If none was proven: no fixes, a speed-up of 1.0 and an empty patch."""

    fixes: tuple[str, ...] = ()
    speedup: float = 1.0
    patch: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    format: int
    baseline_step_ms: float
    candidates: tuple[Tried, ...]
    best: Best


def results(
    outcomes: Sequence[Outcome], best: Outcome | None, texts: Texts, baseline_step_ms: float = 0.0
) -> Results:
    """``outcomes`` in the form of the contract; ``best`` is one of them or None."""
    baselines = [one.baseline_step_ms for one in outcomes] or [baseline_step_ms]
    chosen = Best()
    if best is not None and best.measured is not None:
        patch = unified(best.candidate.overlay, texts)
        chosen = Best(best.candidate.fixes, best.measured.speedup, patch)
    return Results(FORMAT, sum(baselines) / len(baselines), tuple(map(tried, outcomes)), chosen)


def tried(outcome: Outcome) -> Tried:
    """One attempt for JSON. Numbers that were not measured are None."""
    seen = outcome.measured
    repeated = seen if outcome.reason != ONCE else None
    return Tried(
        fixes=outcome.candidate.fixes,
        step_ms=outcome.step_ms,
        speedup=repeated.speedup if repeated else None,
        low=repeated.low if repeated else None,
        high=repeated.high if repeated and math.isfinite(repeated.high) else None,
        loss_drift=seen.loss_drift if seen else None,
        memory_ratio=seen.memory_ratio if seen else None,
        kept=outcome.kept,
        reason=outcome.reason,
    )


def unified(overlay: Mapping[str, str], texts: Texts) -> str:
    """A unified diff for ``git apply`` or ``patch -p1`` in the working folder.

    Paths below the working folder are relative to it, others absolute.
    """
    return "".join(patch.written(file, texts(file) or "", overlay[file]) for file in sorted(overlay))
