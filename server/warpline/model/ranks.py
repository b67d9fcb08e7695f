"""The ranks of a distributed run, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpline.model.report import Report

#: Percent of a step that ranks must wait for one of them before it is reported (TraceML warns at 10 % and
#: calls 20 % critical).
LATE_RANK_PERCENT = 10.0


@dataclass(frozen=True, slots=True)
class LateLine:
    """The line that makes a rank late, and how much more time that rank spends on it than the others do in
    the median."""

    file: str
    line: int
    more_ms: float  # per step


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a distributed run. ``totals``: the totals of its profile
    (:class:`warpline.model.profile.Profile`), without those that were not measured."""

    number: int
    report: Report
    totals: Mapping[str, float]
