"""The error of predicted gains, from earlier predictions and their measurements.

The error of a prediction is |log(predicted / measured)|. It grows with the predicted gain: a prediction of no
gain is rarely off by half, one of 4x may be. So errors are in units of ``scale(predicted)``.

How well a gain is predicted depends on the rule, on the device (better on a CPU), and on whether the
replacement was tried (not so where it was compiled: the trial lacks the script's Python). So each ``Class``
has a ``typical`` error. That of a rule is drawn to that of its family, this to that of all rules on such a
device, tried or not, and this to that of all readings, the more the fewer readings there are. ``low`` to
``high`` holds errors up to ``REACH`` times the typical one: as many times as nine of ten readings on such a
device, tried or not, need, each by the typical error of other scripts (split conformal prediction with scaled
errors: J. Lei et al., *Distribution-free predictive inference for regression*, JASA 2018).
``benchmarks/intervals.py`` tests this on rounds of readings that were left out, and fits the figures.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
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
#: By the device, and whether the replacement was tried on it.
REACH = {
    ("cpu", False): costs.value("interval-reach-cpu"),
    ("cpu", True): costs.value("interval-reach-cpu-tried"),
    ("cuda", False): costs.value("interval-reach-cuda"),
    ("cuda", True): costs.value("interval-reach-cuda-tried"),
}
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
class Class:
    """What the error of a prediction depends on."""

    rule: str
    device: str  # "cpu", or "cuda" for any GPU
    tried: bool  # the trial ran the operators that the fix uses

    @staticmethod
    @cache
    def of(rule: str, device: str, basis: str) -> Class:
        return Class(rule, "cpu" if device == "cpu" else "cuda", basis == TRIED and rule not in COMPILED)

    @property
    def reached(self) -> tuple[str, bool]:
        """The key of ``REACH``."""
        return self.device, self.tried


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

    @property
    def alike(self) -> Class:
        return Class.of(self.rule, self.device, self.basis)


@cache
def known() -> tuple[Reading, ...]:
    """The project's own readings, from ``known.json``: predicted and timed by ``benchmarks/predictions.py``,
    ``bets.py`` and ``pairs.py`` (docs/measuring-tables.md)."""
    rows = json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8"))
    return tuple(Reading(*row) for row in rows)


def scale(predicted: float) -> float:
    """The unit of errors for a predicted ratio of step times."""
    return min(MOST_SCALE, LEAST_SCALE + abs(math.log(max(predicted, 1e-9))))


def bounded(findings: Sequence[Finding], past: Sequence[Miss], device: str) -> tuple[Finding, ...]:
    """``findings`` of a run on ``device`` (its ``kind``) with ``low`` and ``high`` of their predictions.
    ``past``: the project's measurements."""
    return tuple(
        one if one.predicted is None else replace(one, predicted=_bounds(one, one.predicted, past, device))
        for one in findings
    )


def _bounds(finding: Finding, said: Predicted, past: Sequence[Miss], device: str) -> Predicted:
    of = Class.of(finding.rule, device, said.basis)
    return _beside_others(finding, with_bounds(said, of, past, most=without_wait(finding)))


def _beside_others(finding: Finding, predicted: Predicted) -> Predicted:
    """``predicted`` for a step without waits for cores; with them the gain may be as much larger."""
    waits = [one.value for one in finding.evidence if one.metric == CROWDED]
    if not waits or predicted.high is None or waits[0] >= 100:
        return predicted
    return replace(predicted, high=max(predicted.high, predicted.speedup / (1 - waits[0] / 100)))


def with_bounds(
    predicted: Predicted,
    of: Class,
    past: Sequence[Miss] = (),
    before: Sequence[Reading] | None = None,
    most: float = math.inf,
    far: Mapping[tuple[str, bool], float] = REACH,
) -> Predicted:
    """``predicted`` with the interval that holds nine of ten measured gains. ``before``: replaces
    ``known()``, and ``far`` its ``REACH``. ``most``: the gain that the run allows, up to the error of a
    prediction of no gain."""
    unit = width(of, predicted.basis, past, before, far)
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
    of: Class,
    basis: str,
    past: Sequence[Miss] = (),
    before: Sequence[Reading] | None = None,
    far: Mapping[tuple[str, bool], float] = REACH,
) -> float:
    """Half the width of the interval of log(predicted gain), in units of ``scale``.

    The project's own measurements of predictions with the same basis can widen it; ``ENOUGH`` of them
    determine it.
    """
    own = [one.error for one in past if one.basis == basis]
    if len(own) >= ENOUGH:
        return quantile(own)
    usual = typical(of, known() if before is None else before)
    drawn = math.exp(_drawn(sum(map(math.log, own)), len(own), math.log(usual)))
    return far[of.reached] * max(usual, drawn)


def typical(of: Class, readings: Sequence[Reading]) -> float:
    """The usual error of predictions of the class ``of``, in units of ``scale``: a geometric mean."""
    return _Errors(readings).typical(of)


class _Errors:
    """The number of ``readings`` in each of their classes, and the sum of the logarithms of their errors."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self.logs = defaultdict[Hashable, float](float)
        self.counts = Counter[Hashable]()
        for one in readings:
            self.count(one)

    def count(self, one: Reading, times: int = 1) -> None:
        for larger in self._classes(one.alike):
            self.logs[larger] += times * math.log(one.error)
            self.counts[larger] += times

    def typical(self, of: Class) -> float:
        every, *classes = self._classes(of)
        found = self.logs[every] / max(1, self.counts[every])
        for larger in classes:
            found = _drawn(self.logs[larger], self.counts[larger], found)
        return math.exp(found)

    @staticmethod
    def _classes(of: Class) -> tuple[Hashable, ...]:
        """The classes that ``of`` belongs to, the largest first."""
        return (), of.reached, (of.reached, family(of.rule)), of


def _drawn(logs: float, count: int, usual: float) -> float:
    """The mean of ``count`` logarithms with the sum ``logs``, and of ``SHRINK`` more that are ``usual``."""
    return (logs + SHRINK * usual) / (count + SHRINK)


def reach(readings: Sequence[Reading]) -> dict[tuple[str, bool], float]:
    """How many typical errors nine of ten ``readings`` lie within, each by those of other scripts; as
    ``REACH``."""
    scripts = defaultdict[str, list[Reading]](list)
    for one in readings:
        scripts[one.script].append(one)
    others, errors = _Errors(readings), defaultdict[tuple[str, bool], list[float]](list)
    for some in scripts.values():
        for one in some:
            others.count(one, -1)
        for one in some:
            errors[one.alike.reached].append(one.error / others.typical(one.alike))
        for one in some:
            others.count(one)
    return {found: quantile(some) for found, some in errors.items()}


def family(rule: str) -> str:
    """The family of ``FAMILIES`` that ``rule`` belongs to; "" if none."""
    return next((name for name, rules in FAMILIES.items() if rule in rules), "")


def quantile(errors: Sequence[float]) -> float:
    """The smallest error that nine of ten new ones are expected not to exceed; the largest if there are fewer
    than nine."""
    ordered = sorted(errors)
    return ordered[min(len(ordered), math.ceil(COVERED * (len(ordered) + 1))) - 1]
