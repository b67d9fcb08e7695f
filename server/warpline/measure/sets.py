"""Chooses the sets of fixes that a search tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from warpline.measure.attempt import Chosen
from warpline.measure.proposals import Proposal

#: A fix that is predicted to gain, or to add to a set, less than this is not tried in a set.
WORTHLESS = 1.002
#: A fix that gained less than this alone had no gain that one round can show.
NOTHING = 1.01

Predict = Callable[[Chosen], "float | None"]


def first(
    proposals: Sequence[Proposal], predicted: Predict, compiles: Callable[[Chosen], bool]
) -> list[Chosen]:
    """The first sets to try, the most promising first: each fix alone, all fixes together that are predicted
    to gain, and those with what gains only then. Sets that compile come last, since each costs as much as
    several others.
    """
    said = {one: predicted((one,)) for one in proposals}
    slow = {one for one in proposals if compiles((one,))}
    likely = sorted((one for one in proposals if not one.later), key=lambda one: -(said[one] or 1.0))
    every = [one for one in proposals if one.later or (said[one] or 0.0) > WORTHLESS]
    quick = [one for one in every if one not in slow]
    sets = [_of_each(some) for some in (quick, _now(quick), every, _now(every))]
    found: list[Chosen] = []
    for compiled in (False, True):
        alone = [(one,) for one in likely if (one in slow) == compiled]
        several = [one for one in sets if len(one) > 1 and bool(slow.intersection(one)) == compiled]
        found += [*alone[:1], *several, *alone[1:]]
    return list(dict.fromkeys(found))


def _of_each(some: Sequence[Proposal]) -> Chosen:
    """The first fix of each finding."""
    found: dict[str, Proposal] = {}
    for one in some:
        found.setdefault(one.finding.id, one)
    return tuple(found.values())


def _now(some: Sequence[Proposal]) -> list[Proposal]:
    return [one for one in some if not one.later]


def neighbours(chosen: Chosen, alone: Mapping[Proposal, float]) -> list[Chosen]:
    """Sets close to ``chosen``, the most promising first: with all other fixes that gained alone, with one
    fix more, with one less.

    ``alone``: the measured speed-up of each usable fix alone, 1 for one that was not tried alone, in the
    report's order. Fixes are made in that order, each on the text that the earlier ones left.
    """
    taken = {one.finding.id for one in chosen}
    others = sorted((one for one in alone if one.finding.id not in taken), key=lambda one: -alone[one])
    gaining = {one.finding.id: one for one in reversed(others) if alone[one] > NOTHING}
    found = [tuple(one for one in alone if one in chosen or one in gaining.values())]
    found += [tuple(one for one in alone if one in chosen or one is other) for other in others]
    if len(chosen) > 2:
        found += [tuple(one for one in chosen if one is not left) for left in chosen]
    return [one for one in dict.fromkeys(found) if one != chosen]


def adds_nothing(chosen: Chosen, best: Chosen, alone: Mapping[Proposal, float], predicted: Predict) -> bool:
    """Whether the simulation predicts no gain of ``chosen`` over ``best``, and no added fix had a gain
    alone."""
    with_it, without = predicted(chosen), predicted(best)
    added = [one for one in chosen if one not in best]
    if with_it is None or without is None or not added:
        return False
    return with_it < without * WORTHLESS and all(alone.get(one, 0.0) < NOTHING for one in added)
