"""The error of predicted gains, from earlier predictions and their measurements.

The error of a prediction is |log(predicted / measured)|. It grows with what is promised: a fix that is
predicted to gain nothing is rarely off by half, one that is to gain 4 times may be. So errors are taken in
units of ``scale(predicted)``. ``low`` to ``high`` is as wide as nine of ten of them were: the smallest error
that 0.9 (n + 1) of n do not exceed (split conformal prediction: V. Vovk, A. Gammerman, G. Shafer,
*Algorithmic Learning in a Random World*, 2005), or the largest while n is below nine.
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
#: Errors grow with the gain, up to about sixfold: of a large gain, what is left of the step is a small part
#: of what it was, and uncertain by as small a part. A prediction of nothing has an eighth of that.
LEAST_SCALE, MOST_SCALE = 0.25, 2.0
#: Fewer readings than nine cannot say where nine of ten lie: the largest of them then counts as more, with
#: none by this factor (and an error of 1), with each by less. A bound's lower end is no gain at all.
FEW = costs.bound("few-readings")
#: With at least this many readings, at most one in ten new ones is expected above the largest.
LEAST_READINGS = 9
#: From this many measurements on, a basis is used alone.
ENOUGH = 20
#: Fixes whose errors are of a kind of their own, whatever the prediction rests on. Those that were tried are
#: apart from those that were not.
#: What a compiler makes of the code is known once it has compiled it: it may also lose.
COMPILED = frozenset({"launch-bound", "unfused-elementwise", "graph-break", "recompilation"})
#: How much of the host's work goes with a loop is not in the trace.
LOOPS = frozenset({"python-loop-over-tensor", "cat-in-loop", "parameter-loop", "anomaly-detection-on"})
#: How far more workers scale is the machine's: its cores, and its memory where batches are large.
LOADERS = frozenset({
    "loader-without-workers", "too-few-loader-workers", "loader-workers-restart", "slow-sample-line",
})  # fmt: skip
FAMILIES = {"compiled": COMPILED, "loops": LOOPS, "loaders": LOADERS}


@dataclass(frozen=True, slots=True)
class Miss:
    """A prediction and the measured gain, as speed-ups."""

    basis: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """How far off the prediction was, as a multiple of what is usual for a gain of its size."""
        return abs(math.log(self.predicted / self.measured)) / scale(self.predicted)


@dataclass(frozen=True, slots=True)
class Reading(Miss):
    """A miss that was timed in the project's own benchmarks; ``device``: "cuda" or "cpu"."""

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
    """The unit of errors for a speed-up of ``predicted``."""
    return min(MOST_SCALE, LEAST_SCALE + abs(math.log(max(predicted, 1e-9))))


def bounded(findings: Sequence[Finding], past: Sequence[Miss], device: str = "") -> tuple[Finding, ...]:
    """``findings`` with ``low`` and ``high`` of their predictions, made of a run on a ``device`` ("cuda")."""
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
    """``predicted`` with the interval that nine of ten measured gains lie in. ``before``: instead of
    ``known()``."""
    half = width(predicted.basis, past, before, device, rule) * scale(predicted.speedup)
    low, high = predicted.speedup * math.exp(-half), predicted.speedup * math.exp(half)
    if predicted.basis == "bound":
        low = min(low, 1.0)
    return replace(predicted, low=low, high=high)


#: Bases that share their errors if one has too few: a trial replaces a guess in the same
#: replay; a bound and an estimate both rest on a figure that is not of this run.
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
    """How far the interval reaches to either side of the prediction's logarithm, in units of ``scale``.

    The errors used are those of the same basis on the same kind of device if there are nine; else those of
    similar bases, then of all devices. Errors of the rules of ``FAMILIES`` are kept separate, whatever the
    device.
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
    """The readings whose errors say how wide the interval is. ``before``: instead of ``known()``."""
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
    """The name under which the errors of such a prediction are kept: of ``FAMILIES``; else ""."""
    name = next((name for name, rules in FAMILIES.items() if rule in rules), "")
    return f"{name}, tried" if name and basis == "probed" else name


def _quantile(errors: Sequence[float]) -> float:
    ordered = sorted(errors)
    return ordered[min(len(ordered), math.ceil(COVERED * (len(ordered) + 1))) - 1]
