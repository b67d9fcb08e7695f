"""A set of fixes that a search has tried, with the result."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.measure.contest import Outcome
from warpline.measure.numbers import Numbers
from warpline.measure.pairs import Pairs
from warpline.measure.proposals import Proposal

Chosen = tuple[Proposal, ...]
Trial = tuple[Chosen, Numbers]
"""Fixes in the order in which they are made, and the numbers that replace those they write."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried, and the result of one round (of two, if the first contradicted the prediction)."""

    trial: Trial
    pairs: Pairs
    outcome: Outcome

    @property
    def chosen(self) -> Chosen:
        """The fixes, as an edit of the script."""
        return self.trial[0]

    @property
    def numbers(self) -> Numbers:
        """The gain that was measured, and what it cost in loss and memory."""
        return self.trial[1]

    @property
    def speedup(self) -> float:
        """The measured ratio of step times; 0 for an attempt that failed or changed the loss."""
        usable = self.outcome.measured is not None and "loss" not in self.outcome.reason
        return self.outcome.measured.speedup if usable and self.outcome.measured else 0.0
