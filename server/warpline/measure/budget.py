"""The time budget of a search: what still fits, with time reserved for the proof."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from warpline.measure.attempt import Attempt
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.timed import SIDE_BY_SIDE

#: Assumed time of a process until its first slice, before one was timed.
GUESS_S = 5.0
#: The same for a process that compiles its model: tens of seconds for a transformer.
COMPILES_S = 40.0
#: Trials, and a process that hangs in one, leave at least this share of the remaining time.
TRIALS = 0.5
#: Rounds for which a proof has time, also of a gain that two may prove: three, as two often differ.
FEWEST = 3
#: The first round takes at most this share of the budget, since the time of a process is still a guess.
FIRST = 1 / 3


@dataclass(slots=True)
class Budget:
    """A budget of ``seconds`` from ``began`` on. ``proof``: the limits of a proof. The slices of a pair take
    about ``slices_s``, and ``together`` rounds of a proof warm up at the same time."""

    seconds: float
    began: float
    proof: Limits
    slices_s: float = 0.0
    together: int = 1
    start_s: float = 0.0  # time per round to start processes in parallel, in addition to their own time
    plain_s: float = 0.0
    usual_s: float = 0.0  # longest time of a changed process that neither failed nor compiled

    @property
    def deadline(self) -> float:
        """End of the budget, on the clock of ``time.monotonic()``."""
        return self.began + self.seconds

    @property
    def left_s(self) -> float:
        """Seconds until the search has to end."""
        return self.deadline - time.monotonic()

    def limit_s(self, run_s: float, proving: bool) -> float:
        """The limit for one process in seconds, so that one trial cannot use up the budget."""
        return min(run_s, max(1.0, self.left_s * (1.0 if proving else TRIALS)))

    def learn(self, several: Sequence[Pairs], elapsed_s: float) -> None:
        """Update the costs from rounds of ``several`` that took ``elapsed_s``."""
        self.plain_s = max([self.plain_s, *(pairs.plain_seconds for pairs in several)])
        usual = (one.seconds for one in several if not one.failure and not one.candidate.compiles)
        self.usual_s = max([self.usual_s, *usual])
        rounds = max(len(pairs.baseline_ms) for pairs in several)
        own = rounds * max(pairs.plain_seconds for pairs in several)
        own += sum((len(pairs.changed) or 1) * pairs.seconds for pairs in several)
        self.start_s = max(self.start_s, elapsed_s - own)

    def fitting(self, left: Sequence[Pairs], tried: Sequence[Attempt]) -> int:
        """How many of ``left``, from the first on, fit into one round."""
        for count in range(min(len(left), SIDE_BY_SIDE - 1), 0, -1):
            if self.allows(left[:count], tried):
                return count
        # At least one candidate has to be tried before one can be proven.
        return 1 if not tried and self.left_s > 0 else 0

    def allows(self, several: Sequence[Pairs], tried: Sequence[Attempt]) -> bool:
        """Whether a round of ``several`` fits, and then the proof of the best one."""
        if not self.plain_s:
            guess = GUESS_S + sum(self._guess_s(pairs) for pairs in several)
            return guess <= FIRST * self.left_s
        best = max(tried, key=lambda attempt: attempt.speedup, default=None)
        pairs, rounds = several[0], self.proof.first
        if best is not None:
            pairs = best.pairs
            if best.speedup > 1:
                rounds = max(FEWEST, self.proof.for_gain(best.speedup).first)
        return self._round_s(several) + self._proof_s(pairs, rounds) <= self.left_s

    def allows_round(self, pairs: Pairs) -> bool:
        """Whether another round of these runs ends in time."""
        return self._round_s([pairs]) <= self.left_s

    def _proof_s(self, pairs: Pairs, rounds: int) -> float:
        """Seconds for a proof of so many rounds."""
        own_s = self._own_s(pairs)
        start_s = self._round_s([pairs]) - own_s
        return math.ceil(rounds / self.together) * start_s + rounds * own_s

    def _round_s(self, several: Sequence[Pairs]) -> float:
        own = sum(map(self._own_s, several))
        share = min(1.0, (len(several) + 1) / SIDE_BY_SIDE)  # small rounds share one start
        return self.start_s * share + self.plain_s + own

    def _own_s(self, pairs: Pairs) -> float:
        return pairs.seconds or self._guess_s(pairs)

    def _guess_s(self, pairs: Pairs) -> float:
        usual = self.usual_s or GUESS_S + self.slices_s
        return max(COMPILES_S, usual) if pairs.candidate.compiles else usual
