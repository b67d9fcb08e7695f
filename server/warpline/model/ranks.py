"""A run's ranks side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpline.model.report import Report

#: Percent of a step that ranks must wait for one of them before it is reported (TraceML warns at 10 % and
#: calls 20 % critical).
LATE_RANK_PERCENT = 10.0


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a distributed run. ``totals`` are those of its profile
    (:class:`warpline.model.profile.Profile`); what was not measured is missing there."""

    number: int
    report: Report
    totals: Mapping[str, float]
