"""Groups steps that do the same into classes, with each class's share of the time. Pure functions."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, FrozenSet, Tuple

from .signals import EVAL, evaluates

#: What happened in a step.
Class = FrozenSet[Tuple[Any, ...]]

#: The share of steps that a class must have to be the only one measured. If no class has it, steps are
#: measured whatever their class.
USUAL_SHARE = 0.6
WORTH_SAYING = 0.01  # of the time
#: From this share of the time on, the user may want steps that include it. Chosen, not fitted.
MOST = 0.5
BEFORE_S = 1.0
RARE = "what only some steps do"
REMEDY = " (--loop FILE:LINE measures whole iterations of the loop around it)"


class Classes:
    """The class that is measured, and where the time went while steps were timed."""

    def __init__(self, world: int) -> None:
        """``world``: how many ranks there are. Their windows must begin and end together, so with several
        the capture takes every step."""
        self.usual: Class | None = None  # None: steps of all classes
        self._alone = world == 1
        self._steps_ns = 0  # steps of that class
        self._others_ns = 0  # time of other steps beyond that of a usual step
        self._steps = 0
        self._others = 0
        self._evaluation = False  # the others looked like one,
        self._switched = False  # with a model in evaluation mode

    def timed(self, durations: Sequence[int], classes: Sequence[Class], kind: Class | None) -> None:
        """Steps of these ``durations`` (ns) and ``classes`` were timed; those of ``kind`` are measured."""
        self.usual = kind
        own = sorted(of_class(durations, classes, kind))
        typical = own[len(own) // 2] if own else 0
        self._steps_ns += sum(own)
        self._steps += len(durations)
        for duration, other in zip(durations, classes):
            if kind is not None and other != kind:
                self._steps_ns += min(typical, duration)
                self._others_ns += max(0, duration - typical)
                self._others += 1
                self._evaluation |= evaluates(other - kind)
                self._switched |= any(signal[0] == EVAL for signal in other - kind)

    def is_other(self, kind: Class) -> bool:
        """Whether ``kind`` differs from the class of the steps that were timed."""
        return self._alone and self.usual is not None and kind != self.usual

    @property
    def share(self) -> float:
        """The share of the time that steps of other classes took on top of a usual step."""
        return self._others_ns / max(1, self._steps_ns + self._others_ns)

    def notes(self, before_s: float) -> list[str]:
        """Notes about time that no number of the report includes. ``before_s``: seconds of forward passes
        before the first step of an optimizer."""
        found = []
        if self.share >= WORTH_SAYING:
            found.append(
                "%s took %.0f %% of the time while steps were timed, in %d of %d of them; it is in none of "
                "these numbers%s"
                % (self._what(), 100 * self.share, self._others, self._steps, REMEDY * (self.share >= MOST))
            )
        if before_s >= BEFORE_S:
            found.append(
                "forward passes before the first training step took %.0f s, and are left out" % before_s
            )
        return found

    def _what(self) -> str:
        """What steps of other classes do beside a usual step."""
        if self._switched:
            return "an evaluation"
        return "code without gradients (an evaluation or a rollout)" if self._evaluation else RARE


def usual(classes: Sequence[Class]) -> Class | None:
    """The most frequent class, if it has ``USUAL_SHARE`` of the steps; else None. Of equally frequent ones
    the one with the fewest signals, because its steps did nothing in addition."""
    counts = collections.Counter(classes)
    if not counts:
        return None
    found = min(counts, key=lambda kind: (-counts[kind], len(kind), sorted(map(str, kind))))
    return found if counts[found] >= USUAL_SHARE * len(classes) else None


def of_class(values: Sequence[int], classes: Sequence[Class], kind: Class | None) -> tuple[int, ...]:
    """The ``values`` of steps in that class; all of them for None."""
    return tuple(value for value, other in zip(values, classes) if kind is None or other == kind)
