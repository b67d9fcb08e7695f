"""Whether a change moved the loss: the first steps of both scripts, with the same seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from warpline.measure.interval import student

#: Relative to the plain loss. Safe fixes change the order of sums at most. An unsafe one may move the mean
#: of the first losses by as much as one rounding to bf16 (8 significant bits, so 2**-8 of the value): what
#: autocast does to networks is several times less, what another seed does is more (benchmarks/losses.py).
SAFE, UNSAFE = 0.001, 2**-8
#: Beyond this no spread of the losses is an excuse.
NEVER = 0.2
COMPARED = 10
#: How the reason begins when a change is not kept because of the loss.
CHANGED, NOT_FINITE = "the loss changed", "the loss is no longer finite"

Losses = Sequence[float]


@dataclass(frozen=True, slots=True)
class Drift:
    """``value``: mean difference of the first losses over the mean plain loss; None when unseen."""

    value: float | None
    allowed: bool
    reason: str = ""


def drift(plain: Sequence[Losses], changed: Sequence[Losses], safe: bool) -> Drift:
    """Compare the losses of the runs of the plain script with those of the changed one.

    A difference within the tolerance is allowed. So is one that the plain script shows between its
    own runs (no seed holds it), and one whose sign changes from step to step so that its mean does not differ
    from zero (random augmentation drawn by other workers). Losses are compared after as
    many updates, also where a step has more samples: with the same rate of learning it is updates that
    bring the loss down, and the samples of one step are no others' successors.
    """
    reference, tried = _mean(plain), _mean(changed)
    count = min(len(reference), len(tried), COMPARED)
    if not count:
        return Drift(None, True, "no loss was seen, so it was not compared")
    reference, tried = reference[:count], tried[:count]
    if not all(map(math.isfinite, tried)):
        if all(map(math.isfinite, reference)):
            return Drift(None, False, NOT_FINITE)
        return Drift(None, True, "the plain loss is not finite, so it was not compared")
    if not all(map(math.isfinite, reference)):
        return Drift(None, True, "the plain loss is not finite, so it was not compared")
    scale = fmean(map(abs, reference)) or 1.0
    differences = [(new - old) / scale for new, old in zip(tried, reference, strict=True)]
    value = abs(fmean(differences))
    tolerance = SAFE if safe else UNSAFE
    noise = max(_own_noise(plain, count, scale), _standard_error(differences))
    allowed = value <= tolerance or (value <= noise and value <= NEVER)
    reason = "" if allowed else f"{CHANGED} by {value:.2g} of its value (tolerance {tolerance:.1g})"
    return Drift(value, allowed, reason)


def _mean(runs: Sequence[Losses]) -> list[float]:
    """Step by step over the runs that saw a loss."""
    return [fmean(values) for values in zip(*(losses for losses in runs if losses), strict=False)]


def _own_noise(plain: Sequence[Losses], count: int, scale: float) -> float:
    means = [fmean(losses[:count]) for losses in plain if len(losses) >= count]
    means = [mean for mean in means if math.isfinite(mean)]
    return 3 * (max(means) - min(means)) / scale if means else 0.0


def _standard_error(differences: list[float]) -> float:
    if len(differences) < 3:
        return 0.0
    return student(len(differences) - 1) * stdev(differences) / math.sqrt(len(differences))
