"""Keeps the findings with a fix that could gain more than the noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

from warpline.model import costs
from warpline.model.report import Finding

#: The evidence of what a finding may save at most.
MOST = "at most lost"
#: Percent of the step that a fix must be able to save (docs/measuring.md).
LEAST = costs.bound("least-gain")
#: A finding that could save this much is always shown: gains are predicted from shares of the step. A busy
#: machine changes these far less than the step's length. (From here on a finding is an information.)
ALWAYS = 5.0
#: Half the width of a 95 % interval of a mean, in standard errors.
WIDTH = 1.96
#: The median absolute deviation of normal values, as a share of their standard deviation.
DEVIATION = 0.6745


def least_percent(timed_ns: Sequence[float]) -> float:
    """Percent of the step below which a gain is none: 1 %, or the noise of the timing window if that is more,
    but never above ``ALWAYS``.

    The noise is half the width of the 95 % interval of the mean step. Its spread is estimated by the median
    absolute deviation, so that a few slow steps (an evaluation, a neighbour's burst) do not hide findings.
    """
    if len(timed_ns) < 3:
        return LEAST
    middle = median(timed_ns)
    spread = median(abs(step - middle) for step in timed_ns) / DEVIATION
    noise = 100 * WIDTH * spread / math.sqrt(len(timed_ns)) / fmean(timed_ns)
    return min(ALWAYS, max(LEAST, noise))


def within_evidence(finding: Finding, step_ms: float) -> float | None:
    """The shortest step that the finding's own evidence allows it to promise; None where none is in ms.

    Where it says what is lost at most, that is all: a line of a framework has waits and copies of other kinds
    as well, which a replay takes away with it."""
    most = [one.value for one in finding.evidence if one.metric == MOST and one.unit.startswith("percent")]
    if most:
        return step_ms * max(0.0, 1 - max(most) / 100)
    said = [one.value for one in finding.evidence if one.unit == "ms"]
    return max(0.0, step_ms - sum(said)) if said else None


def left_out(findings: Sequence[Finding]) -> str:
    """One line for the notes about the findings that gain too little; empty where there are none."""
    if not findings:
        return ""
    count = len(findings)
    many = Counter(f"{one.rule} at {Path(one.file).name}:{one.line}" for one in findings)
    noun, which = ("finding", "it") if count == 1 else ("findings", "one of them")
    return (
        f"{count} {noun} not shown, because fixing {which} alone would give no measurable gain now: "
        f"{', '.join(many)}"
    )
