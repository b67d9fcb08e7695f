"""What a fix gains, said alike in the tree, the hover, the titles of fixes and messages."""

from __future__ import annotations

from collections.abc import Iterable

from warpline.model.report import Finding, Measured, Predicted
from warpline.view import units

#: A smaller difference in memory, or in the loss, is not shown.
_MEMORY, _LOSS = 0.01, 1e-9
#: An interval wider than this (high over low) hardly says how large the gain is. Chosen, not fitted.
_WIDE = 3.0


def factor(speedup: float) -> str:
    """``1.10x``; below 1 ``28 % slower``."""
    return units.gain(speedup)


def interval(measured: Measured) -> str:
    """``1.10x, 1.09 to 1.12``, or that there is no measurable gain: the whole interval has to lie above 1."""
    bounds = units.interval(measured.low, measured.high)
    if measured.low <= 1.0 <= measured.high:
        return f"no measurable gain, {bounds}"
    return f"{factor(measured.speedup)}, {bounds}"


def besides(measured: Measured) -> str:
    """What else the measurement saw: ``14 % less memory; the loss differs by 0.02``; empty when nothing."""
    found = []
    if measured.memory_ratio is not None and abs(measured.memory_ratio - 1) >= _MEMORY:
        more = "more" if measured.memory_ratio > 1 else "less"
        found.append(f"{units.percent(abs(measured.memory_ratio - 1))} {more} memory")
    if measured.loss_drift is not None and abs(measured.loss_drift) > _LOSS:
        found.append(f"the loss differs by {measured.loss_drift:.2g}")
    return "; ".join(found)


def measured(result: Measured) -> str:
    """``1.10x, 1.09 to 1.12; 14 % less memory``."""
    return "; ".join(filter(None, (interval(result), besides(result))))


def short(finding: Finding) -> str:
    """The measured gain, else the predicted one, to end a fix's title. Empty where neither is known."""
    if finding.measured is not None:
        return measured(finding.measured)
    predicted = finding.predicted
    if predicted is None or predicted.speedup < 1.005:
        return ""
    if uncertain(predicted):
        return f"{roughly(predicted)}, {between(predicted)}: measure it"
    return f"{roughly(predicted)} predicted"


def uncertain(predicted: Predicted) -> bool:
    """Whether a prediction does not say that there is a gain, or hardly how large it is."""
    low, high = predicted.low, predicted.high
    if low is None or high is None:
        return False
    return low <= 1.0 or high > _WIDE * low


def roughly(predicted: Predicted) -> str:
    """``perhaps 2.00x`` if that may be no gain, ``about 8.30x`` if the gain is not known well."""
    if uncertain(predicted) and (predicted.low or 0.0) <= 1.0:
        word = "perhaps "
    else:
        word = "about " if uncertain(predicted) or predicted.basis == "bound" else ""
    return word + factor(predicted.speedup)


def between(predicted: Predicted) -> str:
    """The interval of an uncertain prediction: ``no gain to 2.68x``."""
    low, high = predicted.low or 0.0, predicted.high or 0.0
    return f"{factor(low) if low > 1.0 else 'no gain'} to {factor(high)}"


def long(finding: Finding, kept: bool | None = None, reason: str = "") -> str:
    """The same with the verdict: ``measured 1.10x, 1.09 to 1.12: faster``."""
    if finding.measured is None:
        return short(finding)
    words = f"measured {measured(finding.measured)}"
    if reason and reason not in ("faster", "slower", "no measurable gain"):
        words += f": {reason}"
    return words if kept in (None, True) else f"{words}; not worth applying"


def gained(finding: Finding) -> float | None:
    """The speed-up that is measured, else predicted; None: neither is known, or no gain was measured."""
    if finding.measured is not None:
        return finding.measured.speedup if finding.measured.low > 1 else None
    return finding.predicted.speedup if finding.predicted is not None else None


def best(findings: Iterable[Finding]) -> str:
    """``, best 1.25x`` for the end of a summary, ``predicted`` or ``perhaps`` if it was not measured; empty
    where nothing gains 1 %."""
    top = max(findings, key=lambda finding: gained(finding) or 0.0, default=None)
    gain = gained(top) if top is not None else None
    if top is None or gain is None or gain < 1.01:
        return ""
    return f", best {factor(gain) if top.measured is not None else short(top)}"
