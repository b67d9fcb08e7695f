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
    """The first sets to try, the most promising first: each fix alone, and all fixes together that are
    predicted to gain. Sets that compile come last, since each costs as much as several others.
    """
    said = {one: predicted((one,)) for one in proposals}
    slow = {one for one in proposals if compiles((one,))}
    likely = sorted(proposals, key=lambda one: (one in slow, -(said[one] or 1.0)))
    found: list[Chosen] = [(one,) for one in likely]
    gaining = [one for one in proposals if (said[one] or 0.0) > WORTHLESS]
    for some in (gaining, [one for one in gaining if one not in slow]):
        of_each: dict[str, Proposal] = {}
        for one in some:
            of_each.setdefault(one.finding.id, one)
        if len(of_each) > 1:
            together = tuple(of_each.values())
            # Insert it after the best single fix of its kind.
            found.insert(len(likely) - len(slow) + 1 if slow & set(together) else 1, together)
    return list(dict.fromkeys(found))


def neighbours(chosen: Chosen, alone: Mapping[Proposal, float]) -> list[Chosen]:
    """Sets close to ``chosen``, the most promising first: with all other fixes that gained alone, with one
    fix more, with one less.

    ``alone``: the measured speed-up of each usable fix alone, in the report's order. Fixes are made in that
    order, each on the text that the earlier ones left.
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
