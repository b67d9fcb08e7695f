"""Times plain and changed scripts in rounds, until the intervals are narrow enough or the time is over."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warpline.measure import timed
from warpline.measure.candidate import Candidate
from warpline.measure.ending import Ending
from warpline.measure.forecast import Forecast
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.rounds import in_slices, play
from warpline.measure.timed import Timer
from warpline.measure.verdict import Outcome, outcome
from warpline.model.problem import Problem
from warpline.wire.run import Request

__all__ = ["Contest", "Outcome", "measure", "outcome"]

OnProgress = Callable[[int, int, str], None]
"""``(done, total, message)``: rounds done, rounds expected, progress in words."""
#: ``Limits.seconds`` never leaves fewer rounds than these: one round has no spread.
LEAST_ROUNDS = 2


def _silent(done: int, total: int, message: str) -> None:
    pass


@dataclass(slots=True)
class Contest:
    """Times several candidates against the plain script, which runs once per round for all of them.

    It ends at ``deadline`` (``time.monotonic()``). ``outcomes()`` has the results so far, even if ``run``
    ended with an exception.
    """

    request: Request
    candidates: Sequence[Candidate]
    limits: Limits = field(default_factory=Limits)
    timer: Timer = field(default_factory=timed.Processes)
    on_progress: OnProgress = _silent
    cancelled: threading.Event | None = None
    deadline: float | None = None
    several: list[Pairs] = field(init=False)
    forecast: Forecast = field(init=False)

    def __post_init__(self) -> None:
        self.several = [Pairs(candidate) for candidate in self.candidates]
        self.forecast = Forecast(self.limits)

    def run(self) -> None:
        """Run rounds until every candidate has enough, or until the deadline. Raises Problem if the plain
        script cannot be timed (status 1), or on cancel (130). An error of a changed script becomes its
        outcome."""
        self._tell(None)
        try:
            self._rounds()
        except Problem as problem:
            if problem.status != 130 or not self._late or self._asked_to_end:
                raise

    def _rounds(self) -> None:
        if self.several and not in_slices(self.timer, self.request):
            self._warm_up()
        began = time.monotonic()
        while several := self._unfinished(began):
            done = len(several[0].changed)
            needed = min(pairs.needed(self.limits) for pairs in several)
            self._play(several, range(done, needed), began)

    def outcomes(self, baseline_ms: float = 0.0) -> list[Outcome]:
        """The outcome of each candidate, in their order. ``baseline_ms``: used if no plain step was timed."""
        return [outcome(pairs, self.limits, baseline_ms) for pairs in self.several]

    def _warm_up(self) -> None:
        """Run the first pair, which fills the file caches and detects failures. Neither its result nor its
        time counts."""
        warm = [Pairs(pairs.candidate) for pairs in self.several]
        try:
            self._play(warm, range(1), None)
        finally:
            for pairs, seen in zip(self.several, warm, strict=True):
                pairs.baseline_ms = seen.baseline_ms
                pairs.failure = seen.failure
                pairs.seconds, pairs.plain_seconds = seen.seconds, seen.plain_seconds

    def _play(self, several: Sequence[Pairs], rounds: Sequence[int], began: float | None) -> None:
        def after() -> bool:
            return began is not None and set(map(id, self._unfinished(began))) == set(map(id, several))

        def starting(pairs: Pairs) -> bool:
            self._tell(pairs)
            return self._time_for([pairs]) != []

        play(
            self.request,
            several,
            rounds,
            limits=self.limits,
            timer=self.timer,
            cancelled=Ending(self.cancelled, math.inf if self.deadline is None else self.deadline),
            after=after,
            starting=starting,
        )

    def _unfinished(self, began: float) -> list[Pairs]:
        left = [
            pairs
            for pairs in self.several
            if not pairs.failure
            and len(pairs.changed) < pairs.needed(self.limits)
            and self._clock(pairs, began)
        ]
        fewest = min((len(pairs.changed) for pairs in left), default=0)
        # Candidates without a turn in an interrupted round come first.
        return self._time_for([pairs for pairs in left if len(pairs.changed) == fewest])

    def _clock(self, pairs: Pairs, began: float) -> bool:
        return time.monotonic() - began <= self.limits.seconds or len(pairs.changed) < LEAST_ROUNDS

    @property
    def cut_short(self) -> bool:
        """Whether some candidate had fewer rounds than it needed."""
        return any(not one.failure and len(one.changed) < one.needed(self.limits) for one in self.several)

    @property
    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def _asked_to_end(self) -> bool:
        return self.cancelled is not None and self.cancelled.is_set()

    def _time_for(self, several: list[Pairs]) -> list[Pairs]:
        """The first ones of ``several`` for which there is time until the deadline."""
        if self.deadline is None:
            return several
        left_s = self.deadline - time.monotonic()
        fitting: list[Pairs] = []
        for pairs in several:
            if self.forecast.round_s([*fitting, pairs], self.several) > left_s:
                break
            fitting.append(pairs)
        return fitting

    def _tell(self, pairs: Pairs | None) -> None:
        done, total, message = self.forecast.said(self.several, pairs, self.deadline)
        self.on_progress(done, total, message)


def measure(
    request: Request,
    candidate: Candidate,
    limits: Limits | None = None,
    *,
    timer: Timer | None = None,
    on_progress: OnProgress | None = None,
    cancelled: threading.Event | None = None,
) -> Outcome:
    """Time plain and changed in turn; the outcome with the gain. Raises what ``Contest.run`` raises."""
    contest = Contest(
        request,
        [candidate],
        limits or Limits(),
        timer or timed.Processes(),
        on_progress or _silent,
        cancelled,
    )
    contest.run()
    return contest.outcomes()[0]
