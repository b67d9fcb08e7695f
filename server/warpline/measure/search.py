"""``warpline tune``: the fastest set of fixes that can be proven within a budget.

1. Each fix alone, one round (a second where the first contradicts the prediction): what crashes,
   hangs or moves the loss is out.
2. Sets: the best one grows by the fix that helps it most, predicted order first, and what the
   simulation says adds nothing to the set is not tried; fixes interact, so a fix that did nothing
   alone (it was hidden behind something slower) is tried again in the set.
3. Numbers that the set's fixes wrote (workers, batch size) go up and down while it gets faster.
4. The best set is proven against the plain script in rounds of its own: the rounds of the search do
   not count, as the best of many readings is too good to be true. What cannot be proven gives way
   to the next best.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from warpline.measure import contest, numbers, timed
from warpline.measure.candidate import Candidate
from warpline.measure.contest import Limits, Outcome, Pairs
from warpline.measure.ledger import Ledger
from warpline.measure.numbers import Number, Numbers
from warpline.measure.proposals import Proposal, Workbench
from warpline.measure.timed import Timer
from warpline.model.problem import Problem
from warpline.model.run import Request

TRIED, PROVED = "tried", "proved"
#: A set has to be this much faster than the one before it to be worth going on with: one round is
#: no better than that.
STEP = 0.01
#: Predicted to add less than this to a set: not tried.
WORTHLESS = 1.002
#: Sets that share one run of the plain script in a round.
SHARED = 3
#: A prediction of so much is worth a second look when one round does not show it.
CLEAR = 1.05
#: What a process may take when the budget is used up: a busy machine needs long to import torch.
LEAST_RUN_S = 60.0
PROOF = Limits(first=4, half_width=0.02, rounds=10)

Report = Callable[[int, int | None, str], None]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One set that was tried: its fixes, its numbers, and what one round showed."""

    chosen: tuple[Proposal, ...]
    numbers: Numbers
    pairs: Pairs
    outcome: Outcome

    @property
    def findings(self) -> set[str]:
        return {one.finding.id for one in self.chosen}

    @property
    def speedup(self) -> float:
        """0 for what failed or moved the loss."""
        usable = self.outcome.measured is not None and "loss" not in self.outcome.reason
        return self.outcome.measured.speedup if usable and self.outcome.measured else 0.0


@dataclass(slots=True)
class Search:
    """One search. ``budget_s``: for everything; the proof's share is set aside from the start."""

    request: Request
    bench: Workbench
    ledger: Ledger
    budget_s: float = 300.0
    run_s: float = 120.0
    cores: int = 1
    timer: Timer = field(default_factory=timed.Processes)
    on_progress: Report = field(default=lambda done, total, message: None)
    cancelled: threading.Event | None = None
    attempts: list[Attempt] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)  # of all that the budget is for
    process_s: float = 0.0  # how long one process takes, as seen so far

    def run(self, proposals: Sequence[Proposal]) -> tuple[list[Outcome], Outcome | None]:
        """``(everything tried, the best proven set)``, the proven one in place of its trial."""
        alone = self._alone(proposals)
        best = max(alone, key=lambda attempt: attempt.speedup, default=None)
        if best is not None:
            best = self._with_numbers(self._grown(best, alone))
        proven = self._proven(best)
        outcomes = {attempt.outcome.candidate.key: _once(attempt.outcome) for attempt in self.attempts}
        for outcome in proven:
            outcomes[outcome.candidate.key] = outcome
        kept = [outcome for outcome in proven if outcome.kept]
        return list(outcomes.values()), kept[0] if kept else None

    def predictions(self) -> dict[str, float]:
        """What the simulation said of each set that was tried, by candidate key."""
        found = {}
        for attempt in self.attempts:
            expected = self.bench.predicted(attempt.chosen, attempt.numbers)
            if expected is not None:
                found[attempt.outcome.candidate.key] = expected
        return found

    # -- the search -------------------------------------------------------------------------------

    def _alone(self, proposals: Sequence[Proposal]) -> list[Attempt]:
        left: list[tuple[tuple[Proposal, ...], Numbers]] = [((one,), {}) for one in proposals]
        found = self._try(left[:1])
        left = left[1:]
        while left and self._time_for(2):
            together = next(count for count in (SHARED, 2, 1) if count == 1 or self._time_for(count + 1))
            found += self._try(left[:together])
            left = left[together:]
        return found

    def _grown(self, best: Attempt, alone: Sequence[Attempt]) -> Attempt:
        usable = [attempt for attempt in alone if not attempt.pairs.failure and attempt.speedup > 0]
        left = sorted(usable, key=lambda attempt: -attempt.speedup)
        while left and self._time_for(2):
            following = left.pop(0)
            if following.findings & best.findings:
                continue  # part of the set, or another fix of the same finding
            # As the report ranks them: earlier fixes leave the text that later ones are made on.
            wanted = (*best.chosen, *following.chosen)
            chosen = tuple(one for one in proposals_of(usable) if one in wanted)
            if self._adds_nothing(best, chosen, following):
                continue
            for attempt in self._try([(chosen, {})]):
                if attempt.speedup > best.speedup * (1 + STEP):
                    best = attempt
        return best

    def _adds_nothing(self, best: Attempt, chosen: Sequence[Proposal], following: Attempt) -> bool:
        with_it, without = self.bench.predicted(chosen), self.bench.predicted(best.chosen)
        if with_it is None or without is None:
            return False
        # A measured gain of its own outweighs a prediction that sees none.
        return with_it < without * WORTHLESS and following.speedup < 1 + STEP

    def _with_numbers(self, best: Attempt) -> Attempt:
        for name, number in self.bench.written(best.chosen).items():
            present = self.bench.predicted(best.chosen, best.numbers)
            sets: list[tuple[tuple[Proposal, ...], Numbers]] = []
            for value in numbers.others(name, number, self.cores):
                tried = {**best.numbers, name: Number(value, number)}
                expected = self.bench.predicted(best.chosen, tried)
                if expected is None or present is None or expected >= present * (1 - STEP):
                    sets.append((best.chosen, tried))
            while sets and self._time_for(len(sets) + 1):
                found = self._try(sets[:SHARED])
                sets = sets[SHARED:]
                faster = max(found, key=lambda attempt: attempt.speedup, default=best)
                if faster.speedup > best.speedup * (1 + STEP):
                    best = faster
        return best

    def _try(self, sets: Sequence[tuple[tuple[Proposal, ...], Numbers]]) -> list[Attempt]:
        """One round of the plain script and each set (or what an earlier search left of it)."""
        found: list[tuple[tuple[Proposal, ...], Numbers, Pairs]] = []
        known = {one.outcome.candidate.key for one in self.attempts}
        for chosen, tried in sets:
            candidate = self.bench.candidate(chosen, tried)
            if candidate is not None and candidate.key not in known:
                known.add(candidate.key)
                found.append((chosen, tried, self.ledger.pairs(candidate, TRIED)))
        new = [pairs for _, _, pairs in found if not pairs.changed and not pairs.failure]
        if new:
            titles = ", ".join(pairs.candidate.title for pairs in new)
            self.on_progress(len(self.attempts), None, f"trying {titles}")
            self._play(new, 0, TRIED)
        attempts = [self._attempt(*one) for one in found]
        self.attempts += attempts
        return attempts

    def _attempt(self, chosen: tuple[Proposal, ...], tried: Numbers, pairs: Pairs) -> Attempt:
        attempt = Attempt(chosen, tried, pairs, contest.outcome(pairs, PROOF))
        if len(pairs.changed) == 1 and self._contradicts(attempt) and self._time_for(2):
            self._play([pairs], 1, TRIED)
            attempt = Attempt(chosen, tried, pairs, contest.outcome(pairs, PROOF))
        return attempt

    def _contradicts(self, attempt: Attempt) -> bool:
        """Not half of a clear prediction was seen: on a busy machine one round may be that wrong."""
        expected = self.bench.predicted(attempt.chosen, attempt.numbers)
        seen = attempt.speedup
        return expected is not None and expected > CLEAR and 0 < seen < 1 + (expected - 1) / 2

    # -- the proof --------------------------------------------------------------------------------

    def _proven(self, best: Attempt | None) -> list[Outcome]:
        """Outcomes of ``best`` and those nearest to it, up to the first that is proven."""
        found: list[Outcome] = []
        ranked = sorted(self.attempts, key=lambda attempt: (attempt is not best, -attempt.speedup))
        for attempt in ranked[:3]:
            if attempt.speedup < 1 + STEP / 2 or (found and not self._time_for(0)):
                break
            found.append(self._prove(attempt.outcome.candidate))
            if found[-1].kept:
                break
        return found

    def _prove(self, candidate: Candidate) -> Outcome:
        pairs = self.ledger.pairs(candidate, PROVED)
        while not pairs.failure and len(pairs.changed) < pairs.needed(PROOF):
            done = len(pairs.changed)
            if done >= PROOF.first and not self._time_for(2, reserve=0):
                break
            self.on_progress(done, pairs.needed(PROOF), f"proving {candidate.title}")
            self._play([pairs], done, PROVED)
        return contest.outcome(pairs, PROOF)

    # -- the clock --------------------------------------------------------------------------------

    def _play(self, several: Sequence[Pairs], number: int, role: str) -> None:
        began = time.monotonic()
        left = max(LEAST_RUN_S, min(self.run_s, self.budget_s - (began - self.began)))
        limits = replace(PROOF, run_s=left)
        contest.play(self.request, several, number, limits=limits, timer=self.timer, cancelled=self.cancelled)
        for pairs in several:
            self.ledger.keep(pairs, role)
        if not any(pairs.failure for pairs in several):
            self.process_s = max(self.process_s, (time.monotonic() - began) / (len(several) + 1))

    def _time_for(self, processes: int, reserve: int = 2 * PROOF.first) -> bool:
        """Whether so many more processes fit, the proof's set aside."""
        needed = (processes + reserve) * self.process_s
        return time.monotonic() - self.began + needed <= self.budget_s


def proposals_of(attempts: Sequence[Attempt]) -> list[Proposal]:
    """The fixes of ``attempts``, each once, in their order."""
    found: list[Proposal] = []
    for attempt in attempts:
        found += [one for one in attempt.chosen if one not in found]
    return found


def _once(outcome: Outcome) -> Outcome:
    """A trial of one round is no proof."""
    if outcome.measured is None or "loss moved" in outcome.reason:
        return replace(outcome, kept=False)
    return replace(outcome, kept=False, reason="tried, not proven")


def baseline_ms(outcomes: Sequence[Outcome]) -> float:
    """The plain step over all outcomes."""
    values = [one.baseline_step_ms for one in outcomes if math.isfinite(one.baseline_step_ms)]
    if not values:
        raise Problem("the plain script was never timed", 1)
    return fmean(values)
