"""The error of predicted gains, from earlier predictions and their measurements.

The error of a prediction is |log(predicted / measured)|. It grows with the predicted gain: a prediction of no
gain is rarely off by half, one of 4x may be. So errors are in units of ``scale(predicted)``.

Rules differ in how well their gains are predicted. So each has a ``typical`` error, which is drawn to that of
its family, and this to that of all rules, the more the fewer readings there are. ``low`` to ``high`` holds
errors up to ``REACH`` times the typical one: as many times as nine of ten readings need, each by the typical
error of other scripts (split conformal prediction with scaled errors: J. Lei et al., *Distribution-free
predictive inference for regression*, JASA 2018). Where the replacement was tried, large errors are rarer, so
that has a reach of its own; not so where it was compiled, since the trial lacks the script's Python.
``benchmarks/intervals.py`` tests this on rounds of readings that were left out, and fits the figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from warpline.model import costs
from warpline.model.report import CROWDED, Finding, Predicted

COVERED = 0.9
TRIED = "probed"
#: Errors grow with the gain up to a gain of about 4.5x, and not beyond.
LEAST_SCALE, MOST_SCALE = costs.value("interval-least-scale"), 2.0
#: A class of errors is drawn to the larger class that it belongs to as if that had so many readings in it.
SHRINK = costs.value("interval-shrink")
#: By whether the replacement was tried.
REACH = {False: costs.value("interval-reach"), True: costs.value("interval-reach-tried")}
#: A smaller error says nothing: timing does not tell it from none.
LEAST_ERROR = 0.02
#: From this many measurements in a project on, a basis is used alone.
ENOUGH = 20
#: Rules whose errors have a cause in common.
#: The compiler's output cannot be predicted, and may be slower.
COMPILED = frozenset({"launch-bound", "unfused-elementwise", "graph-break", "recompilation"})
#: The trace does not show how much host work is saved without a loop.
LOOPS = frozenset({"python-loop-over-tensor", "cat-in-loop", "parameter-loop", "anomaly-detection-on"})
#: The step waits for batches, and can at most lose that wait.
WAITS = frozenset({"loader-without-workers", "too-few-loader-workers", "slow-sample-line"})
#: How far workers scale depends on the machine: its cores, and its memory bandwidth for large batches.
LOADERS = WAITS | {"loader-workers-restart"}
FAMILIES = {"compiled": COMPILED, "loops": LOOPS, "loaders": LOADERS}


@dataclass(frozen=True, slots=True)
class Miss:
    """A prediction and the measured gain, both as ratios of step times."""

    basis: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """The prediction's error, in units of ``scale(predicted)``; at least ``LEAST_ERROR`` of a gain."""
        return max(LEAST_ERROR, abs(math.log(self.predicted / self.measured))) / scale(self.predicted)


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
    ``bets.py`` and ``pairs.py`` (docs/measuring-tables.md)."""
    rows = json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8"))
    return tuple(Reading(*row) for row in rows)


def scale(predicted: float) -> float:
    """The unit of errors for a predicted ratio of step times."""
    return min(MOST_SCALE, LEAST_SCALE + abs(math.log(max(predicted, 1e-9))))


def bounded(findings: Sequence[Finding], past: Sequence[Miss]) -> tuple[Finding, ...]:
    """``findings`` with ``low`` and ``high`` of their predictions. ``past``: the project's measurements."""
    return tuple(
        one
        if one.predicted is None
        else replace(
            one,
            predicted=_beside_others(
                one, with_bounds(one.predicted, past, rule=one.rule, most=without_wait(one))
            ),
        )
        for one in findings
    )


def _beside_others(finding: Finding, predicted: Predicted) -> Predicted:
    """``predicted`` for a step without waits for cores; with them the gain may be as much larger."""
    waits = [one.value for one in finding.evidence if one.metric == CROWDED]
    if not waits or predicted.high is None or waits[0] >= 100:
        return predicted
    return replace(predicted, high=max(predicted.high, predicted.speedup / (1 - waits[0] / 100)))


def with_bounds(
    predicted: Predicted,
    past: Sequence[Miss],
    before: Sequence[Reading] | None = None,
    rule: str = "",
    most: float = math.inf,
    far: Mapping[bool, float] = REACH,
) -> Predicted:
    """``predicted`` with the interval that holds nine of ten measured gains. ``before``: replaces
    ``known()``, and ``far`` its ``REACH``. ``most``: the gain that the run allows, up to the error of a
    prediction of no gain."""
    unit = width(predicted.basis, past, before, rule, far)
    half = unit * scale(predicted.speedup)
    ceiling = max(predicted.speedup, most) * math.exp(unit * LEAST_SCALE)
    return replace(
        predicted,
        low=predicted.speedup * math.exp(-half),
        high=min(predicted.speedup * math.exp(half), ceiling),
    )


def without_wait(finding: Finding) -> float:
    """The gain if the step no longer waited for batches; infinite for findings about something else."""
    waits = [one.value for one in finding.evidence if (one.metric, one.unit) == ("exposed wait", "ms")]
    if finding.predicted is None or finding.rule not in WAITS or not waits:
        return math.inf
    step_ms = finding.predicted.step_ms * finding.predicted.speedup
    return step_ms / (step_ms - waits[0]) if waits[0] < step_ms else math.inf


def width(
    basis: str,
    past: Sequence[Miss],
    before: Sequence[Reading] | None = None,
    rule: str = "",
    far: Mapping[bool, float] = REACH,
) -> float:
    """Half the width of the interval of log(predicted gain), in units of ``scale``.

    The project's own measurements of predictions with the same basis can widen it; ``ENOUGH`` of them
    determine it.
    """
    own = [one.error for one in past if one.basis == basis]
    if len(own) >= ENOUGH:
        return quantile(own)
    usual = typical(rule, known() if before is None else before)
    return far[is_tried(basis, rule)] * max(usual, _drawn(own, usual, SHRINK))


def typical(rule: str, readings: Sequence[Reading]) -> float:
    """The usual error of predictions for ``rule``, in units of ``scale``: a geometric mean."""
    mine = FAMILIES.get(family(rule))
    relatives = [one for one in readings if (one.rule in mine if mine else not family(one.rule))]
    found = _drawn([one.error for one in readings], 1.0, 0.0)
    found = _drawn([one.error for one in relatives], found, SHRINK)
    return _drawn([one.error for one in relatives if one.rule == rule], found, SHRINK)


def _drawn(errors: Sequence[float], usual: float, weight: float) -> float:
    """The geometric mean of ``errors`` and of ``usual``, which counts as ``weight`` of them."""
    if not errors:
        return usual
    logs = sum(math.log(error) for error in errors)
    return math.exp((logs + weight * math.log(usual)) / (len(errors) + weight))


def reach(readings: Sequence[Reading]) -> dict[bool, float]:
    """How many typical errors nine of ten ``readings`` lie within, each by those of other scripts; by whether
    the replacement was tried."""
    errors: dict[bool, list[float]] = {False: [], True: []}
    for one in readings:
        others = [other for other in readings if other.script != one.script]
        errors[is_tried(one.basis, one.rule)].append(one.error / typical(one.rule, others))
    return {tried: quantile(some) for tried, some in errors.items() if some}


def is_tried(basis: str, rule: str) -> bool:
    """Whether the trial ran the operators that the fix of ``rule`` uses. It does not where that compiles."""
    return basis == TRIED and rule not in COMPILED


def family(rule: str) -> str:
    """The family of ``FAMILIES`` that ``rule`` belongs to; "" if none."""
    return next((name for name, rules in FAMILIES.items() if rule in rules), "")


def quantile(errors: Sequence[float]) -> float:
    """The smallest error that nine of ten new ones are expected not to exceed; the largest if there are fewer
    than nine."""
    ordered = sorted(errors)
    return ordered[min(len(ordered), math.ceil(COVERED * (len(ordered) + 1))) - 1]
