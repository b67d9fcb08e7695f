"""Matches with the lines that they are on, and what those cost."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.costed import Costed
from warpline.rulekit.graph.graph import MOVED, SAME, Graph, graph_of
from warpline.rulekit.graph.known import known
from warpline.rulekit.graph.match import Match
from warpline.rulekit.own_gradients import own_gradient_at

FileLine = tuple[str, int]
_MOVING = SAME | MOVED
#: How often an operator was called: at a line, by its name.
Uses = collections.Counter[tuple[FileLine, str]]


@dataclass(frozen=True, slots=True)
class Matched(Costed):
    """All matches of one kind with their result at one line."""

    match: Match
    place: FileLine  # the line that makes the result, or that applies the function it is in
    applied: str = ""  # the class of that function, which has a backward pass of its own


def matched(context: Context, *families: str) -> list[Matched]:
    """The formulas of the recorded step, of these families, that matter; none in a run without a record."""
    flow = context.profile.facts.dataflow
    if not flow.name:
        return []
    graph = graph_of(flow)
    by_place: dict[tuple[FileLine, str], list[Match]] = {}
    for family in families:
        for match in known(graph)[family]:
            place = _place(graph, match)
            if place is not None and not _is_called(context, place, match):
                by_place.setdefault((place, match.kind), []).append(match)
    costed = (_costed(context, graph, place, matches) for (place, _), matches in by_place.items())
    found = (_applied(context, graph, one) for one in costed if one is not None)
    return [one for one in found if context.matters(one.step_ms)]


def _is_called(context: Context, place: FileLine, match: Match) -> bool:
    """Whether the line calls the function itself: torch computes some of them by several operators, too."""
    name = match.call.partition("(")[0].rpartition(".")[2]
    source = context.source(place[0])
    return bool(name) and any(source.is_named(call.func, name) for call in source.at(place[1], cst.Call))


def by_hand(one: Matched) -> str:
    """What to do where no edit can be written, as the end of a message."""
    match = one.match
    if match.reason:
        return f" No edit is offered: {match.reason}."
    why = (
        f"`{one.applied}` has a backward pass of its own, which goes with it"
        if one.applied
        else "its operators are not one expression in one function"
    )
    return f" Replace it with `{match.call}` by hand: no edit is offered, because {why}."


def without_formulas(matches: Iterable[Matched], formulas: Sequence[Costed]) -> list[Matched]:
    """The matches on lines without a formula in the text; those have an edit already."""
    told = {place for formula in formulas for place in formula.places}
    return [one for one in matches if not told.intersection(one.places)]


def _place(graph: Graph, match: Match) -> FileLine | None:
    """The line that makes the result, in the function that begins and ends it, else in the one that does most
    of it. One that gives several tensors to the rest, as a mean and a deviation, cannot make the call."""
    found = [(node, (site.file, site.function), site) for node in match.nodes if (site := graph.site(node))]
    functions = collections.Counter(function for _, function, _ in found)
    if not functions:
        return None
    (most, _), *_ = functions.most_common(1)
    made = {value for node, function, _ in found if function == most for value in node.outputs}
    rest = [node for node, function, _ in found if function != most]
    given = made & {graph.origin(value) for node in rest for value in node.inputs}
    first, result = graph.site(match.nodes[0]), graph.site(match.result)
    if result is not None and (
        len(given) > 1 or (result.file, result.function) in (most, first and (first.file, first.function))
    ):
        return result.place
    return next(site.place for _, function, site in reversed(found) if function == most)


def _applied(context: Context, graph: Graph, one: Matched) -> Matched:
    """What a function with a backward pass of its own computes is replaced where that is applied, and costs
    what its backward pass does, too."""
    site = graph.site(one.match.result)
    owner = own_gradient_at(context, site.file, site.line) if site is not None else None
    around = graph.caller(one.match.result)
    if site is None or owner is None or around is None:
        return one
    backward = site.function.rpartition(".")[0] + ".backward"
    more = [cost for cost in context.profile.lines if (cost.file, cost.function) == (site.file, backward)]
    shares = (*one.shares, *(1.0 for _ in more))
    return replace(one, costs=(*one.costs, *more), shares=shares, place=around, applied=owner.name.value)


def _costed(context: Context, graph: Graph, place: FileLine, matches: list[Match]) -> Matched | None:
    # Of the layers that run the same lines only some were looked at: the others are counted by their sites.
    own = {(node.site, graph.called(node)) for match in matches for node in match.nodes}
    lines = {at for match in matches for node in match.nodes if (at := graph.place(node))}
    all_uses, own_uses = Uses(), Uses()
    for node in graph.nodes:
        at = graph.place(node)
        if at is not None and at in lines and node.name not in _MOVING:
            name = graph.called(node)
            all_uses[at, name] += 1
            own_uses[at, name] += (node.site, name) in own
    costs = tuple(context.costs(sorted(lines)))
    if not costs:
        return None
    return Matched(costs, tuple(_share(cost, all_uses, own_uses) for cost in costs), matches[0], place)


def _share(cost: LineCost, all_uses: Uses, own_uses: Uses) -> float:
    """The part of a line's forward time that is of the match's own operators."""
    whole = mine = 0.0
    for op in cost.ops:
        key = (cost.place, op.name.removeprefix("aten::").rstrip("_"))
        if op.phase == "forward" and all_uses[key]:
            whole += op.device_ms
            mine += op.device_ms * own_uses[key] / all_uses[key]
    if whole > 0:
        return mine / whole
    here = [key for key in all_uses if key[0] == cost.place]
    return sum(own_uses[key] for key in here) / max(1, sum(all_uses[key] for key in here))
