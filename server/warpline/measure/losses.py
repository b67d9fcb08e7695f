"""Checks whether a change moves the loss, from the first steps of both scripts with the same seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from warpline.model.student import student

#: Tolerances relative to the plain loss. A safe fix changes at most the order of sums. An unsafe one may
#: change the mean of the first losses by one rounding to bf16 (8 significant bits, so 2**-8 of the value).
#: Autocast changes it by several times less, another seed by more (benchmarks/losses.py).
SAFE, UNSAFE = 0.001, 2**-8
#: A larger relative change is never allowed, however much the losses vary between runs.
NEVER = 0.2
COMPARED = 10
#: Beginning of the reason if a change is rejected because of the loss.
CHANGED, NOT_FINITE = "the loss changed", "the loss is no longer finite"

Losses = Sequence[float]


@dataclass(frozen=True, slots=True)
class Drift:
    """The change of the loss. ``value``: mean difference of the first losses, divided by the mean plain loss;
    None if no loss was recorded."""

    value: float | None
    allowed: bool
    reason: str = ""


def drift(plain: Sequence[Losses], changed: Sequence[Losses], safe: bool, joined: int = 1) -> Drift:
    """Compare the losses of the plain script's runs with those of the changed script's.

    A difference within the tolerance is allowed. So is one as large as between runs of the plain script
    (which is not deterministic despite the seed), and one whose sign varies from step to step, so that its
    mean is not significantly different from 0 (random augmentation drawn by other workers). Losses are
    compared after the same number of updates, even if a step has more samples: at the same learning rate, the
    number of updates decides how far the loss falls. ``joined``: losses of the plain script whose sum is one
    of the changed script's.
    """
    plain = [_sums(run, joined) for run in plain]
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


def _sums(run: Losses, joined: int) -> Losses:
    """The sums of ``joined`` losses each."""
    return [math.fsum(run[at : at + joined]) for at in range(0, len(run) - joined + 1, joined)]


def _mean(runs: Sequence[Losses]) -> list[float]:
    """Mean loss of each step, over the runs that recorded one."""
    return [fmean(values) for values in zip(*(losses for losses in runs if losses), strict=False)]


def _own_noise(plain: Sequence[Losses], count: int, scale: float) -> float:
    means = [fmean(losses[:count]) for losses in plain if len(losses) >= count]
    means = [mean for mean in means if math.isfinite(mean)]
    return 3 * (max(means) - min(means)) / scale if means else 0.0


def _standard_error(differences: list[float]) -> float:
    if len(differences) < 3:
        return 0.0
    return student(len(differences) - 1) * stdev(differences) / math.sqrt(len(differences))
