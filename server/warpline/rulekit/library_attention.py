"""Attention that a library computes operator by operator, below a line of the user's code."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from warpline.model.change import Change, Fuse, Replace
from warpline.model.profile import LineCost, Op
from warpline.rulekit.context import Context
from warpline.rulekit.frameworks import applies, runs_in
from warpline.rulekit.graph import (
    ATTENTION,
    UNREAD,
    attentions_of_libraries,
    graph_of,
    matched,
    scores_of,
)
from warpline.wire.frameworks import constructions
from warpline.wire.sites import Framework, facts_of

RULE = "hand-written-attention"
_BATCHED = 3  # dimensions: a product of fewer is a layer's


@dataclass(frozen=True, slots=True)
class LibraryAttention:
    """Attention below one line. ``scores``: the shapes of its scores; ``words``: see ``Match``."""

    cost: LineCost
    scores: frozenset[tuple[int, ...]]
    words: tuple[str, ...]

    @property
    def spent_ms(self) -> float:
        """The device's time a step in what reads or writes the scores, forward and backward."""
        return min(sum(op.device_ms for op in self.cost.ops if self.has(op)), self.cost.step_ms)

    @property
    def fused_ms(self) -> float:
        """What a fused kernel takes at least: as much as the longest of these operators in each phase."""
        longest: dict[str, float] = {}
        for op in filter(self.has, self.cost.ops):
            longest[op.phase] = max(longest.get(op.phase, 0.0), op.device_ms)
        return min(sum(longest.values()), self.spent_ms)

    def replaced(self, share: float) -> Change:
        """A fused kernel in its place, which can be tried. ``share``: its part of the line's time, 0 to 1."""
        place, shares = (self.cost.place,), (share,)
        fused = Fuse(place, keep=self.fused_ms / self.spent_ms, shares=shares)
        return Replace("attention", place, fused, self.words, shares)

    def has(self, op: Op) -> bool:
        """Whether an operator reads or writes the scores."""
        return any(touches(op, scores) for scores in self.scores)


def asked_for(context: Context) -> list[LibraryAttention]:
    """What the user's calls of frameworks' switches have computed so, by line.

    A framework's own function that is known by name, or operators, tell of the other settings: see
    ``library_functions``.
    """
    switches = [
        one
        for one in constructions()
        for setting in one.settings
        if setting.rule == RULE and not setting.functions and not setting.operators
        for site in context.sites("framework")
        if facts_of(Framework, site).construction == one.key and applies(context, site, setting)
    ]
    found = of_libraries(context) if switches else []
    return [one for one in found if any(runs_in(context, one.cost.place, each) for each in switches)]


def of_libraries(context: Context) -> list[LibraryAttention]:
    """What libraries compute so, by the user's line, as the operators of a step show."""
    flow = context.profile.facts.dataflow
    if not flow.name:
        return []
    graph = graph_of(flow)
    scores: dict[tuple[str, int], set[tuple[int, ...]]] = {}
    words: dict[tuple[str, int], set[str]] = {}
    for match in attentions_of_libraries(graph):
        place = graph.place(match.result)
        if place is not None:
            scores.setdefault(place, set()).add(scores_of(graph, match))
            words.setdefault(place, set()).update(match.words)
    found = (
        LibraryAttention(cost, frozenset(scores[cost.place]), tuple(sorted(words[cost.place])))
        for cost in context.costs(scores)
    )
    return [one for one in found if one.spent_ms > 0]


def fusible_scores(context: Context) -> dict[tuple[str, int], set[tuple[int, ...]]]:
    """The shapes of the scores that a fused attention would not write, by the line that computes them:
    whoever wrote the attention, if ``hand-written-attention`` finds it."""
    found = {one.cost.place: set(one.scores) for one in asked_for(context)}
    for one in matched(context, ATTENTION, UNREAD):
        scores = scores_of(graph_of(context.profile.facts.dataflow), one.match)
        for place in one.places:
            found.setdefault(place, set()).add(scores)
    return found


def touches(op: Op, scores: tuple[int, ...]) -> bool:
    """Whether an operator reads or writes tensors of that shape."""
    return _reads(op, scores) or _writes(op, scores)


def _reads(op: Op, scores: tuple[int, ...]) -> bool:
    return any(prod(one) == prod(scores) and one[-2:] == scores[-2:] for one in op.shapes)


def _writes(op: Op, scores: tuple[int, ...]) -> bool:
    return any(
        min(len(left), len(right)) >= _BATCHED
        and left[-1] == right[-2]
        and (left[-2], right[-1]) == scores[-2:]
        and prod(left[:-1]) * right[-1] == prod(scores)
        for left, right in pairwise(op.shapes)
    )
