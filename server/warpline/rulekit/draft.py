"""A rule's result: a finding without id, rank and prediction."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.model.change import Change
from warpline.model.report import Evidence, Fix, Severity, SourceLine
from warpline.wire.places import Placed


@dataclass(frozen=True, slots=True)
class Draft(Placed):
    file: str  # the edit site
    line: int
    cause: SourceLine
    message: str
    evidence: tuple[Evidence, ...]
    cost_ms: float | None  # measured time per step that it is about; None: it is not about time
    saving_ms: float  # at best saved per step
    change: Change | None = None
    fixes: tuple[Fix, ...] = ()
    severity: Severity | None = None  # None: the rule's own
    #: The cost is the most that the timing window allows, since what looks closer hides it: neither
    #: a short wait under the profiler nor a replay of that says that it costs nothing. Or this machine has
    #: no room for the fix. A replay that sees no gain makes it no prediction then, and hides nothing.
    unseen: bool = False
    #: The cost is the most that the timing window allows, and only a replay tells what there is of it: where
    #: none sees a gain there is no finding.
    replayed: bool = False
    #: Only a trial of the change tells whether it gains anything: without one there is no finding.
    tried: bool = False
    #: A fix is only offered where a trial had the same results.
    proven: bool = False
    least: float = (
        0.0  # percent of the step that the change has to save as predicted, else there is no finding
    )
    alternative: Change | None = None  # what the last fix changes, where that is something else
    #: What takes the time ("planning"), where it is paid once and not in every later step.
    once: str = ""
    #: What it is about ("launch overhead") and a change without it, where that hides what others would save.
    hides: tuple[str, Change] | None = None
