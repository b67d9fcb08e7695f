"""``warpline tune``: the fastest set of fixes that can be proven within a budget.

1. One round: each fix alone, the set of all fixes that are predicted to gain, and that set with those that
   gain only then, because something slower hides them (the plan has them). A candidate that crashes, hangs or
   moves the loss is dropped.
2. Sets: the best set so far with one fix more (or one less), as long as it gets faster. Fixes interact: a fix
   without a gain alone (something else was the bottleneck) is tried again in the set, unless the simulation
   predicts no gain there either.
3. Numbers that the set's fixes wrote (workers, batch size) are varied as long as it gets faster.
4. Proof: the best set is timed against the plain script in separate rounds. The rounds of the search do not
   count, since the best of many readings overstates the gain. If it cannot be proven, or falls far behind
   what the next best showed, that one is tried.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from warpline.measure import contest, losses, numbers, sets, timed
from warpline.measure.attempt import Attempt, Chosen, Trial
from warpline.measure.budget import Budget
from warpline.measure.contest import Outcome
from warpline.measure.ending import Ending
from warpline.measure.ledger import Ledger
from warpline.measure.numbers import Number
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.proposals import Proposal, Workbench
from warpline.measure.rounds import play
from warpline.measure.timed import Timer
from warpline.measure.verdict import UNPROVEN
from warpline.model.problem import Problem
from warpline.wire.run import Request

TRIED, PROVED = "tried", "proved"
#: The search continues with a set that is faster than the previous one by at least this share, which is about
#: the accuracy of one round.
STEP = 0.01
#: A predicted gain from here on gets a second round if the first one does not show it.
CLEAR = 1.05
PROOF = Limits(first=4, half_width=0.02, rounds=10)
#: A proof has at least two rounds, since one has no spread.
LEAST_ROUNDS = 2

OnProgress = Callable[[int, int | None, str], None]


@dataclass(slots=True)
class Search:
    """One search. ``budget_s``: seconds for all of it, from ``began`` on; no process starts later."""

    request: Request
    bench: Workbench
    ledger: Ledger
    budget_s: float = 300.0
    run_s: float = 120.0
    cores: int = 1
    timer: Timer = field(default_factory=timed.Processes)
    on_progress: OnProgress = lambda done, total, message: None
    cancelled: threading.Event | None = None
    began: float = field(default_factory=time.monotonic)  # start of the budget
    attempts: list[Attempt] = field(default_factory=list)
    proven: list[Outcome] = field(default_factory=list)  # outcomes of proofs, failed ones included
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = Budget(self.budget_s, self.began, PROOF)
        if isinstance(self.timer, timed.Processes):
            self.budget.slices_s = self.timer.slices_s
            self.budget.together = max(1, self.timer.warm_together // 2)  # plain and changed

    def run(self, proposals: Sequence[Proposal]) -> tuple[list[Outcome], Outcome | None]:
        """``(everything tried, the best proven set)``; a proof replaces the trial of its set."""
        best = self._best_of(self._first(proposals))
        if best is not None:
            best = self._with_numbers(self._grown(best, proposals))
        self._prove_one_of(best)
        return self.known()

    def known(self) -> tuple[list[Outcome], Outcome | None]:
        """The same for everything tried so far, also if ``run`` ended with an exception."""
        outcomes = {attempt.outcome.candidate.key: _once(attempt.outcome) for attempt in self.attempts}
        for outcome in self.proven:
            outcomes[outcome.candidate.key] = outcome
        kept = [outcome for outcome in self.proven if outcome.kept]
        return list(outcomes.values()), kept[0] if kept else None

    def predictions(self) -> dict[str, float]:
        """The predicted gain of each set that was tried, by candidate key."""
        found = {}
        for attempt in self.attempts:
            expected = self.bench.predicted(*attempt.trial)
            if expected is not None:
                found[attempt.outcome.candidate.key] = expected
        return found

    # -- the search -------------------------------------------------------------------------------

    def _first(self, proposals: Sequence[Proposal]) -> list[Attempt]:
        found = self._try([(chosen, {}) for chosen in sets.first(proposals, self._said, self._compiles)])
        best = self._best_of(found)
        doubted = [attempt.pairs for attempt in found if best and self._contradicts(attempt, best.speedup)]
        if doubted and self.budget.allows(doubted, self.attempts):
            self._play(doubted, range(1, 2), TRIED)
            found = [self._again(attempt) for attempt in found]
            self.attempts = [self._again(attempt) for attempt in self.attempts]
        return found

    def _said(self, chosen: Chosen) -> float | None:
        return self.bench.predicted(chosen)

    def _compiles(self, chosen: Chosen) -> bool:
        candidate = self.bench.candidate(chosen)
        return candidate is not None and candidate.compiles

    def _grown(self, best: Attempt, proposals: Sequence[Proposal]) -> Attempt:
        seen = {one.chosen[0]: one.speedup for one in self.attempts if len(one.chosen) == 1}
        known = [one for one in proposals if one in seen or self._said((one,)) is not None]
        alone = {one: gain for one in known if (gain := seen.get(one, 1.0)) > 0}
        while True:
            trials: list[Trial] = [
                (chosen, {})
                for chosen in sets.neighbours(best.chosen, alone)
                if not sets.adds_nothing(chosen, best.chosen, alone, self.bench.predicted)
            ]
            found = self._try(trials)
            faster = self._best_of(found)
            if faster is None or faster.speedup <= best.speedup * (1 + STEP):
                return best
            best = faster

    def _with_numbers(self, best: Attempt) -> Attempt:
        for name, number in self.bench.written(best.chosen).items():
            value, before = number, None
            while before is not best:
                before = best
                trials = self._other_numbers(best, name, number, value)
                for attempt in self._try(trials):
                    if attempt.speedup > best.speedup * (1 + STEP):
                        best = attempt
                        value = best.numbers[name].value
        return best

    def _other_numbers(self, best: Attempt, name: str, written: int, value: int) -> list[Trial]:
        present = self.bench.predicted(best.chosen, best.numbers)
        found: list[Trial] = []
        for other in numbers.others(name, value, self.cores):
            tried = {**best.numbers, name: Number(other, written)}
            expected = self.bench.predicted(best.chosen, tried)
            if expected is None or present is None or expected >= present * (1 - STEP):
                found.append((best.chosen, tried))
        return found

    def _best_of(self, attempts: Sequence[Attempt]) -> Attempt | None:
        return max(attempts, key=lambda attempt: attempt.speedup, default=None)

    def _try(self, trials: Sequence[Trial]) -> list[Attempt]:
        """Time each set in a round with the plain script, as many sets at a time as fit into the budget.
        Rounds of an earlier search are reused.
        """
        found: list[Attempt] = []
        left: list[tuple[Trial, Pairs]] = []
        known = {one.outcome.candidate.key for one in self.attempts}
        for trial in trials:
            candidate = self.bench.candidate(*trial)
            if candidate is None or candidate.key in known:
                continue
            known.add(candidate.key)
            pairs = self.ledger.pairs(candidate, TRIED)
            if pairs.changed or pairs.failure:
                found.append(self._attempt(trial, pairs))
            else:
                left.append((trial, pairs))
        while left:
            several = left[: self.budget.fitting([pairs for _, pairs in left], self.attempts)]
            if not several:
                break
            left = left[len(several) :]
            titles = ", ".join(pairs.candidate.title for _, pairs in several)
            self.on_progress(len(self.attempts), None, f"trying {titles}")
            self._play([pairs for _, pairs in several], range(1), TRIED)
            found += [self._attempt(trial, pairs) for trial, pairs in several if pairs.baseline_ms]
        return found

    def _attempt(self, trial: Trial, pairs: Pairs) -> Attempt:
        self.attempts.append(Attempt(trial, pairs, contest.outcome(pairs, PROOF)))
        return self.attempts[-1]

    def _again(self, attempt: Attempt) -> Attempt:
        return replace(attempt, outcome=contest.outcome(attempt.pairs, PROOF))

    def _contradicts(self, attempt: Attempt, best: float) -> bool:
        """Whether less than half of a clear predicted gain was measured: on a busy machine, one round may be
        that far off. Not of what would stay behind the best set all the same."""
        expected, seen = self.bench.predicted(*attempt.trial), attempt.speedup
        return (
            len(attempt.pairs.changed) == 1
            and expected is not None
            and expected > max(CLEAR, best)
            and 0 < seen < 1 + (expected - 1) / 2
        )

    # -- the proof --------------------------------------------------------------------------------

    def _prove_one_of(self, best: Attempt | None) -> None:
        """Prove ``best``, or else the next best sets, until one is proven. One that falls behind the next has
        its other rounds at the end."""
        ranked = sorted(self.attempts, key=lambda attempt: (attempt is not best, -attempt.speedup))
        turns = [attempt for attempt in ranked[:3] if attempt.speedup >= 1 + STEP / 2]
        for attempt, rival in zip(turns, [*turns[1:], None], strict=False):
            if self._prove(attempt, rival):
                return
        for attempt in turns[:-1]:
            if self._prove(attempt, None):
                return

    def _prove(self, attempt: Attempt, rival: Attempt | None) -> bool:
        """Whether it could be proven; not if it falls behind what ``rival`` has shown."""
        candidate = attempt.outcome.candidate
        pairs = self.ledger.pairs(candidate, PROVED)
        quick = PROOF.for_gain(attempt.speedup)

        def limits() -> Limits:
            """Limits with few rounds, until these have proved nothing; then the usual ones."""
            few = len(pairs.changed) < quick.first or contest.outcome(pairs, quick).kept
            return quick if few else PROOF

        def proof() -> Outcome:
            seen = pairs.changed or pairs.failure
            return contest.outcome(pairs, limits()) if seen else attempt.outcome

        def more() -> bool:
            done, needed = len(pairs.changed), pairs.needed(limits())
            if done >= needed:
                return False
            # Nothing else can use the rest of the budget, so an unproven set has another try.
            if done >= LEAST_ROUNDS and not self.budget.allows_round(pairs) and proof().kept:
                return False
            if rival is not None and pairs.changed and _behind(pairs, rival):
                return False
            self.on_progress(done, needed, f"proving {candidate.title}")
            return True

        while not pairs.failure and self.budget.left_s > 0 and more():
            self._play([pairs], range(len(pairs.changed), pairs.needed(limits())), PROVED, more)
        found = proof()
        if len(pairs.changed) < LEAST_ROUNDS and not pairs.failure:
            found = replace(found, kept=False, reason=UNPROVEN)
        self.proven.append(found)
        return found.kept

    def _play(
        self,
        several: Sequence[Pairs],
        rounds: Sequence[int],
        role: str,
        more: Callable[[], bool] = lambda: True,
    ) -> None:
        def after() -> bool:
            for pairs in several:
                self.ledger.keep(pairs, role)
            return more() and self.budget.left_s > 0

        began = time.monotonic()
        ended = Ending(self.cancelled, self.budget.deadline)
        try:
            play(
                self.request,
                several,
                rounds,
                limits=replace(
                    PROOF, run_s=self.budget.limit_s(self.run_s, role == PROVED), plain_s=self.run_s
                ),
                timer=self.timer,
                cancelled=ended,
                after=after,
            )
        except Problem as problem:
            # The end of the budget is not a failure. A cancel is passed on to the caller.
            for pairs in several:
                self.ledger.keep(pairs, role)
            if problem.status != 130 or (self.cancelled is not None and self.cancelled.is_set()):
                raise
        else:
            self.budget.learn(several, time.monotonic() - began)


def _once(outcome: Outcome) -> Outcome:
    """The outcome of a trial, marked as not proven."""
    if outcome.measured is None or outcome.reason.startswith((losses.CHANGED, losses.NOT_FINITE)):
        return replace(outcome, kept=False)
    rounds = "1 round" if outcome.rounds == 1 else f"{outcome.rounds} rounds"
    return replace(outcome, kept=False, reason=f"seen in {rounds}, not proven")


def _behind(pairs: Pairs, rival: Attempt) -> bool:
    """Whether the rounds of a proof show less than half of the gain that ``rival`` had in its trial."""
    return fmean(pairs.log_ratios()) < math.log(rival.speedup) / 2
