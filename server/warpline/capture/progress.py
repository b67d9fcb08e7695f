"""How far a capture has come: what the runner tells us through a pipe, line by line."""

from __future__ import annotations

from dataclasses import dataclass

#: The stages in their order; "reading" belongs to the server, the others come from the runner.
STAGES = (
    *("starting", "held", "waiting", "warmup", "timing", "resting"),
    *("capturing", "writing", "reading", "ending"),
)


@dataclass(frozen=True, slots=True)
class Progress:
    stage: str  # one of STAGES
    done: int  # steps of this stage that are done
    total: int | None  # None where the end is not known
    message: str  # for a person: "warm-up 2/5"
