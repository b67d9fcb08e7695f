"""How far a gain may lie from its prediction, by what was measured of earlier ones.

The error of a prediction is |log(predicted / measured)|. It grows with what is promised: a fix that is
predicted to gain nothing is rarely off by half, one that is to gain 4 times may be. So errors are taken in
units of ``scale(predicted)``. ``low`` to ``high`` is as wide as nine of ten of them were: the smallest error
that 0.9 (n + 1) of n do not exceed (split conformal prediction: V. Vovk, A. Gammerman, G. Shafer,
*Algorithmic Learning in a Random World*, 2005), or the largest while n is below nine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpline.model.report import Finding, Predicted

COVERED = 0.9
#: Errors grow with the gain up to about a doubling; a prediction of nothing has a quarter of that.
LEAST_SCALE = 0.25
#: (basis, predicted, measured) before anything was measured here: what ``benchmarks/predictions.py`` timed on
#: two H200s on 2026-11-22 (docs/measuring.md), 15 readings of 14 fixes to 8 scripts. Those that rested on
#: what a compiler would do, or on an assumed figure, are estimates.
KNOWN = (
    *(("simulated", 4.69, 4.60), ("simulated", 8.18, 8.66), ("simulated", 1.56, 1.48)),
    *(("simulated", 1.07, 1.08), ("simulated", 1.07, 1.10), ("estimate", 1.53, 1.68)),
    *(("simulated", 1.50, 1.44), ("simulated", 1.34, 1.33), ("simulated", 1.26, 1.28)),
    *(("simulated", 2.42, 2.67), ("simulated", 1.03, 0.91), ("simulated", 2.30, 2.30)),
    *(("estimate", 1.27, 0.90), ("estimate", 2.45, 3.83), ("estimate", 3.30, 3.85)),
    # On a busy CPU, by processor time (``benchmarks/bets.py``): first contact, and three of a later round.
    *(("probed", 1.06, 1.08), ("probed", 1.11, 1.05), ("probed", 1.35, 1.38), ("probed", 1.72, 1.51)),
    *(("probed", 1.25, 1.11), ("probed", 1.13, 1.24), ("probed", 2.00, 2.08), ("simulated", 1.59, 1.35)),
    *(("bound", 1.79, 1.28), ("probed", 1.08, 1.24), ("probed", 1.25, 1.09)),
)
#: A bound has no replay behind it, and an estimate has an assumption in it. Until enough of them were
#: measured they count as this much wider than a simulation; a bound's lower end is no gain at all.
UNKNOWN = 1.5
#: So many measurements of one basis speak for themselves.
ENOUGH = 20


@dataclass(frozen=True, slots=True)
class Miss:
    """A prediction and what came of it, as speed-ups."""

    basis: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        return abs(math.log(self.predicted / self.measured)) / scale(self.predicted)


def scale(predicted: float) -> float:
    """The unit of errors for a speed-up of ``predicted``."""
    return min(1.0, LEAST_SCALE + abs(math.log(max(predicted, 1e-9))))


def bounded(findings: Sequence[Finding], past: Sequence[Miss]) -> tuple[Finding, ...]:
    """``findings`` with ``low`` and ``high`` of their predictions."""
    return tuple(
        one if one.predicted is None else replace(one, predicted=with_bounds(one.predicted, past))
        for one in findings
    )


def with_bounds(predicted: Predicted, past: Sequence[Miss]) -> Predicted:
    """``predicted`` with the interval that nine of ten measured gains lie in."""
    half = width(predicted.basis, past) * scale(predicted.speedup)
    low, high = predicted.speedup * math.exp(-half), predicted.speedup * math.exp(half)
    if predicted.basis == "bound":
        low = min(low, 1.0)
    return replace(predicted, low=low, high=high)


def width(basis: str, past: Sequence[Miss]) -> float:
    """Of the logarithm, to either side, in units of ``scale``."""
    own = [one.error for one in past if one.basis == basis]
    if len(own) >= ENOUGH:
        return _quantile(own)
    known = [Miss(*one) for one in KNOWN]
    if basis in ("simulated", "probed"):
        return _quantile([*(one.error for one in known if one.basis in ("simulated", basis)), *own])
    return _quantile([*(one.error for one in known if one.basis == "estimate"), *own]) * UNKNOWN


def _quantile(errors: Sequence[float]) -> float:
    ordered = sorted(errors)
    return ordered[min(len(ordered), math.ceil(COVERED * (len(ordered) + 1))) - 1]
