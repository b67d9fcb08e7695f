"""Estimates how long a measurement will take, from the time of its processes so far."""

from __future__ import annotations

import time
from collections.abc import Sequence

from warpline.measure.pairs import Limits, Pairs
from warpline.model import units

#: Assumed time of a process, before one was timed.
GUESS_S = 12.0


class Forecast:
    """The remaining seconds of a measurement, and its progress in words."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def round_s(self, several: Sequence[Pairs], every: Sequence[Pairs]) -> float:
        """Seconds for a round of ``several``. Candidates that were not timed yet count as 0: they may fit."""
        if not several:
            return 0.0
        plain_s = max((pairs.plain_seconds for pairs in every), default=0.0)
        return plain_s + sum(pairs.seconds for pairs in several)

    def left_s(self, every: Sequence[Pairs]) -> float:
        """Seconds for all rounds that are needed, by the present estimate."""
        usual = max((pairs.seconds for pairs in every), default=0.0) or GUESS_S
        plain_s = max((pairs.plain_seconds for pairs in every), default=0.0) or GUESS_S
        rounds = [
            0 if pairs.failure else max(0, pairs.needed(self._limits) - len(pairs.changed)) for pairs in every
        ]
        own = sum(count * (pairs.seconds or usual) for count, pairs in zip(rounds, every, strict=True))
        return max(rounds, default=0) * plain_s + own

    def said(self, every: Sequence[Pairs], now: Pairs | None, deadline: float | None) -> tuple[int, int, str]:
        """``(rounds done, rounds expected, words)`` before a process of ``now``."""
        done = sum(len(pairs.changed) for pairs in every)
        total = sum(
            len(pairs.changed) if pairs.failure else max(len(pairs.changed), pairs.needed(self._limits))
            for pairs in every
        )
        left_s = self.left_s(every)
        if deadline is not None:
            left_s = max(0.0, min(left_s, deadline - time.monotonic()))
        left = f"about {units.seconds(left_s)} left"
        if now is None:
            return done, total, f"the script without changes; {left}"
        needed = now.needed(self._limits)
        number = f"fix {every.index(now) + 1} of {len(every)}" if now in every else "first measurement"
        return (
            done,
            total,
            f"{now.candidate.title} ({number}), round {len(now.changed) + 1} of {needed}; {left}",
        )
