"""The error of predicted gains, from earlier predictions and their measurements.

The error of a prediction is |log(predicted / measured)|. It grows with the predicted gain: a prediction of no
gain is rarely off by half, one of 4x may be. So errors are in units of ``scale(predicted)``. ``low`` to
``high`` is wide enough for nine of ten errors: of n errors, the smallest one that at least 0.9 (n + 1) do not
exceed (split conformal prediction: V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random
World*, 2005), or the largest if n is below nine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from warpline.model import costs
from warpline.model.report import Finding, Predicted

COVERED = 0.9
#: Errors grow with the gain up to a gain of about 6x, and not beyond. A prediction of no gain has an eighth
#: of the largest scale.
LEAST_SCALE, MOST_SCALE = 0.25, 2.0
#: Fewer than nine readings do not determine an interval for nine of ten. The largest error is then multiplied
#: by a factor: this one without any reading (with an assumed error of 1), and a smaller one with each
#: reading. The lower end for a bound is no gain.
FEW = costs.bound("few-readings")
#: With at least this many readings, at most one in ten new ones is expected above the largest.
LEAST_READINGS = 9
#: From this many measurements on, a basis is used alone.
ENOUGH = 20
#: Rules whose errors are kept separate from those of other rules, for every basis. Predictions from trials
#: are again separate from the others.
#: The compiler's output cannot be predicted, and may be slower.
COMPILED = frozenset({"launch-bound", "unfused-elementwise", "graph-break", "recompilation"})
#: The trace does not show how much host work is saved without a loop.
LOOPS = frozenset({"python-loop-over-tensor", "cat-in-loop", "parameter-loop", "anomaly-detection-on"})
#: How far workers scale depends on the machine: its cores, and its memory bandwidth for large batches.
LOADERS = frozenset({
    "loader-without-workers", "too-few-loader-workers", "loader-workers-restart", "slow-sample-line",
})  # fmt: skip
FAMILIES = {"compiled": COMPILED, "loops": LOOPS, "loaders": LOADERS}


@dataclass(frozen=True, slots=True)
class Miss:
    """A prediction and the measured gain, both as ratios of step times."""

    basis: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """The prediction's error, in units of ``scale(predicted)``."""
        return abs(math.log(self.predicted / self.measured)) / scale(self.predicted)


@dataclass(frozen=True, slots=True)
class Reading(Miss):
    """A prediction with its measurement from the project's benchmarks. ``device``: "cuda" or "cpu"."""

    script: str = ""
    rule: str = ""
    device: str = ""
    when: str = ""


@cache
def known() -> tuple[Reading, ...]:
    """The project's own readings, from ``known.json``: predicted and timed by ``benchmarks/predictions.py``,
    ``bets.py`` and ``pairs.py`` (docs/measuring-tables.md). ``benchmarks/intervals.py`` scores the intervals,
    each reading by those of other scripts."""
    rows = json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8"))
    return tuple(Reading(*row) for row in rows)


def scale(predicted: float) -> float:
    """The unit of errors for a predicted ratio of step times."""
    return min(MOST_SCALE, LEAST_SCALE + abs(math.log(max(predicted, 1e-9))))


def bounded(findings: Sequence[Finding], past: Sequence[Miss], device: str = "") -> tuple[Finding, ...]:
    """``findings`` with ``low`` and ``high`` of their predictions. ``device``: the run's kind of device."""
    return tuple(
        one
        if one.predicted is None
        else replace(one, predicted=with_bounds(one.predicted, past, device=device, rule=one.rule))
        for one in findings
    )


def with_bounds(
    predicted: Predicted,
    past: Sequence[Miss],
    before: Sequence[Reading] | None = None,
    device: str = "",
    rule: str = "",
) -> Predicted:
    """``predicted`` with the interval that holds nine of ten measured gains. ``before``: replaces
    ``known()``."""
    half = width(predicted.basis, past, before, device, rule) * scale(predicted.speedup)
    low, high = predicted.speedup * math.exp(-half), predicted.speedup * math.exp(half)
    if predicted.basis == "bound":
        low = min(low, 1.0)
    return replace(predicted, low=low, high=high)


#: Bases that share their errors if one has too few. Trials and simulations use the same replay. Bounds and
#: estimates both use a figure that is not from this run.
_ALIKE = {
    "simulated": ("simulated",),
    "probed": ("simulated", "probed"),
    "estimate": ("estimate", "bound"),
    "bound": ("estimate", "bound"),
}


def width(
    basis: str,
    past: Sequence[Miss],
    before: Sequence[Reading] | None = None,
    device: str = "",
    rule: str = "",
) -> float:
    """Half the width of the interval of log(predicted gain), in units of ``scale``.

    It uses the errors of the same basis on the same kind of device if there are nine; else those of similar
    bases, then those of all devices. The errors of the rules in ``FAMILIES`` are kept separate, for all
    devices together.
    """
    own = [one.error for one in past if one.basis == basis]
    if len(own) >= ENOUGH:
        return _quantile(own)
    found = [*(one.error for one in alike(basis, before, device, rule)), *own]
    missing = max(0, LEAST_READINGS - len(found) + len(own))
    wider: float = FEW ** (missing / LEAST_READINGS)
    return wider * (_quantile(found) if found else 1.0)


def alike(
    basis: str, before: Sequence[Reading] | None = None, device: str = "", rule: str = ""
) -> list[Reading]:
    """The readings that determine the interval's width. ``before``: replaces ``known()``."""
    mine = family(basis, rule)
    every = known() if before is None else before
    every = [one for one in every if family(one.basis, one.rule) == mine]
    some: list[Reading] = []
    if mine:
        return list(every)
    for here in (True, False):
        for bases in ((basis,), _ALIKE.get(basis, (basis,))):
            some = [one for one in every if one.basis in bases and (not here or one.device == device)]
            if len(some) >= LEAST_READINGS:
                return some
    return some


def family(basis: str, rule: str) -> str:
    """The family of ``FAMILIES`` that the errors of such a prediction belong to; "" if none."""
    name = next((name for name, rules in FAMILIES.items() if rule in rules), "")
    return f"{name}, tried" if name and basis == "probed" else name


def _quantile(errors: Sequence[float]) -> float:
    ordered = sorted(errors)
    return ordered[min(len(ordered), math.ceil(COVERED * (len(ordered) + 1))) - 1]
