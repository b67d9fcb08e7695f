"""Which sets of fixes are worth a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from warpline.measure.attempt import Chosen
from warpline.measure.proposals import Proposal

#: Predicted to gain, or to add, less than this: not tried in a set.
WORTHLESS = 1.002
#: A fix that gained less than this by itself did nothing that one round could show.
NOTHING = 1.01

Predict = Callable[[Chosen], "float | None"]


def first(
    proposals: Sequence[Proposal], predicted: Predict, compiles: Callable[[Chosen], bool]
) -> list[Chosen]:
    """What to begin with, the likeliest first: each fix alone, and all that are predicted to gain
    together. Sets that compile come after all others: each costs as much as several of those.
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
            # Behind the best single fix of its kind.
            found.insert(len(likely) - len(slow) + 1 if slow & set(together) else 1, together)
    return list(dict.fromkeys(found))


def neighbours(chosen: Chosen, alone: Mapping[Proposal, float]) -> list[Chosen]:
    """Sets next to ``chosen``: with all other fixes that gained something alone, with one more, with
    one less; the likeliest first.

    ``alone``: the measured speed-up of each usable fix by itself, in the report's order. Earlier fixes
    leave the text that later ones are made on.
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
    """Whether the simulation sees no gain in ``chosen`` over ``best``, and no fix that it adds had one."""
    with_it, without = predicted(chosen), predicted(best)
    added = [one for one in chosen if one not in best]
    if with_it is None or without is None or not added:
        return False
    return with_it < without * WORTHLESS and all(alone.get(one, 0.0) < NOTHING for one in added)
