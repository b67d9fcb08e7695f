"""Findings on gradients that no optimizer takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Change, Scale, Together
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.calling import below, is_forward, model_born, part_called
from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.graph import graph_of, whole_graph
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.parts import parts
from warpline.rulekit.graph.unheld import calls_of_unheld, of_unheld
from warpline.rulekit.message import count
from warpline.rulekit.saving import Spent, leaving
from warpline.rulekit.ungraphed import without_graph
from warpline.rulekit.unheld import asking, frozen_ms, frozen_weights, trained_later, unheld_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source
from warpline.wire.sites import Module, Untrained, facts_of

_FOR_NOBODY = (
    "The backward pass takes {spent} of each step here ({share}) for gradients of parameters that no "
    "optimizer has."
)
_OF_MODULES = (
    "The backward pass takes {spent} of each step ({share}) for gradients of this part, which no "
    "optimizer has."
)


def for_nobody(context: Context) -> Iterator[Draft]:
    """Parts whose gradients no optimizer takes: the backward pass goes through them for nothing."""
    flow = context.profile.facts.dataflow
    if not flow.unheld or context.sites("parallel") or trained_later(context):
        return
    if flow.around:
        yield from _around(context)
        return
    graph = graph_of(flow)
    unheld = of_unheld(graph)
    costs = [cost for cost in context.costs(unheld.shares) if cost.backward_ms > 0]
    if not costs:
        return
    hottest = max(costs, key=lambda cost: cost.backward_ms * unheld.shares[cost.place])
    place = unheld_at(context, unheld, hottest)
    modules = _whole(context, graph)
    if place is None and not modules:
        return
    lines, spent = costs, sum(cost.backward_ms * unheld.shares[cost.place] for cost in costs)
    whole = sum(cost.backward_ms for cost in costs)
    if place is not None:
        place = part_called(context, place, lambda cost: cost.total_backward_ms)
        if place.place not in unheld.shares:  # else the operators are on the line, or on some beside it
            lines = below(context, place)
            whole = sum(cost.backward_ms for cost in lines)
            spent = min(place.total_backward_ms, whole)
    share, of_weights = spent / whole, frozen_ms(context)
    changes: tuple[Change, ...] = tuple(forward_only(cost, share) for cost in lines if cost.backward_ms > 0)
    beside = Spent(
        context.profile.lines if modules else (),
        lambda cost: of_weights(cost) * (1 - share if cost in lines else 1),
    )
    if not context.matters(total := spent + beside.total):
        return
    fixes = [partial(without_graph, context, place.place)] if place is not None else []
    if modules:
        fixes.insert(0, partial(_without_gradients, context, modules))
    yield context.draft(
        modules[0][0] if modules else place.place if place is not None else hottest.place,
        _OF_MODULES if modules else _FOR_NOBODY,
        context.spent("backward pass", total),
        cause=hottest.place,
        cost_ms=total,
        change=Together((*changes, *beside.without(context).changes)),
        fixes=fixes,
    )


def _whole(context: Context, graph: Graph) -> list[tuple[tuple[str, int], Untrained]]:
    """The modules that have all parameters that no optimizer has, and no others, as ``_untrained`` gives
    them; none where these are not all of them, or no edit can say so of each."""
    modules = _untrained(context)
    weights = sum(facts_of(Untrained, site).weights or 0 for site in context.sites(Untrained.KIND))
    if not modules or weights < sum(value not in graph.producer for value in graph.flow.unheld):
        return []
    try:
        fix = _without_gradients(context, modules)
    except Refused:
        return []
    return modules if context.reached.refusal(fix, context.source) is None else []


def _around(context: Context) -> Iterator[Draft]:
    """The same where parts are compiled: by what the calls outside of compiled code caused."""
    costs = context.costs(calls_of_unheld(graph_of(context.profile.facts.dataflow)))
    place = max(costs, key=lambda cost: cost.total_backward_ms, default=None)
    lines = [cost for cost in context.profile.lines if cost.backward_ms > 0]
    whole = sum(cost.backward_ms for cost in lines)
    if place is None or not context.matters(spent := min(place.total_backward_ms, whole)):
        return
    yield context.draft(
        place.place,
        _FOR_NOBODY,
        context.spent("backward pass", spent),
        cost_ms=spent,
        change=Together(tuple(forward_only(cost, spent / whole) for cost in lines)),
        fixes=[partial(without_graph, context, place.place)],
    )


def frozen(context: Context) -> Iterator[Draft]:
    """Weights that no optimizer has, between parts that are trained: adapters leave them as they are."""
    if _made_again(context):
        yield from _of_new_layers(context)
        return
    weights = {} if context.profile.facts.dataflow.around else frozen_weights(context)
    spent = Spent(context.profile.lines if weights else (), frozen_ms(context))
    total = spent.total
    if not context.matters(total) or context.sites("parallel") or trained_later(context):
        return
    at = spent.hottest.place
    models = [site for site in context.sites("module") if "." in (facts_of(Module, site).type or "")]
    model = model_born(context, spent.hottest) or next(iter(models), None)
    untrained = _untrained(context)
    yield context.draft(
        untrained[0][0] if untrained else model.place if model is not None else at,
        "The backward pass computes the gradients of {weights} weights that no optimizer has: "
        "{spent} a step ({share}).",
        {
            "weights": count("weights without an optimizer", sum(weights.values())),
            **context.spent("gradients of weights", total),
        },
        cause=at,
        cost_ms=total,
        change=spent.without(context),
        fixes=[partial(_without_gradients, context, untrained)]
        if untrained
        else [f"{_BY_HAND}, as on the whole model before adapters are added"],
    )


def _made_again(context: Context) -> list[Node]:
    """The operators that make parameters in forward passes of the recorded step; empty where any that no
    optimizer has was there before, or is made elsewhere, as what an attack changes."""
    graph = whole_graph(context.profile.facts.dataflow)
    if graph is None:
        return []
    made = [graph.producer.get(value) for value in graph.flow.unheld]
    sites = [graph.site(node) if node is not None else None for node in made]
    if not all(site is not None and is_forward((site.file, site.function)) for site in sites):
        return []
    return [node for node in made if node is not None]


def _of_new_layers(context: Context) -> Iterator[Draft]:
    """Layers that a forward pass makes and forgets: what is computed of random numbers is never trained."""
    graph, nodes = whole_graph(context.profile.facts.dataflow), _made_again(context)
    own = parts(context, graph, nodes) if graph is not None else []
    spent = sum(part.step_ms for part in own)
    if not own or not context.matters(spent):
        return
    yield context.draft(
        max(own, key=lambda part: part.step_ms).place,
        "A layer is made again in each step: {weights} parameters get new numbers, which no optimizer "
        "trains. Filling them takes {spent} ({share}).",
        {
            "weights": count("parameters made in a step", len(nodes)),
            **context.spent("filling parameters", spent),
        },
        cost_ms=spent,
        change=Together(tuple(leaving(context, part.place, part.left) for part in own)),
        fixes=["make the layer once, in the `__init__` of its module: then it is trained, too"],
    )


_BY_HAND = "call `requires_grad_(False)` on what is not trained"


def _untrained(context: Context) -> list[tuple[tuple[str, int], Untrained]]:
    """Where the script says which modules it does not train, the one with most weights first: the line that
    sets it to evaluate, with ``eval``; where none does, the line that makes it, or that calls the function
    which only returns it."""
    found = {}
    for site in context.sites(Untrained.KIND):
        facts, place = facts_of(Untrained, site), site.place
        places = [frame.place for frame in site.frames]
        outer = places[places.index(place) :] if place in places and not facts.evaluated else []
        returned = (one for one in outer if not context.source(one[0]).at(one[1], cst.Return))
        found[next(returned, place), facts.type] = facts
    pairs = [(place, facts) for (place, _), facts in found.items()]
    return sorted(pairs, key=lambda pair: -(pair[1].weights or 0))


def _without_gradients(context: Context, untrained: list[tuple[tuple[str, int], Untrained]]) -> Fix:
    """``requires_grad_(False)`` after the calls that make the modules, or set them to evaluate. Raises
    Refused where that is not all of them, or would freeze others as well."""
    source = context.source(untrained[0][0][0])
    edits = Edits(source)
    for (file, line), facts in untrained:
        found: list[cst.BaseExpression] = [
            *source.calls(line, "eval" if facts.evaluated else facts.type or "")
        ]
        found = found or _held_at(source, line, facts.held or [])
        names = {name.rpartition(".")[2] for name in facts.held or []}
        again = source.calls(line, "requires_grad_") or any(map(names.__contains__, asking(context)))
        if file != source.path or facts.shared or len(found) != 1 or again:
            raise Refused(_BY_HAND)
        edits.replace(found[0], f"{source.code(found[0])}.requires_grad_(False)")
    return edits.fix("Ask for no gradients of these weights", "unsafe")


def _held_at(source: Source, line: int, names: list[str]) -> list[cst.BaseExpression]:
    """The call whose result the statement on that line gives to what is known to hold the module."""
    statement = source.statement_at(line)
    given = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if not isinstance(given, cst.Assign) or len(given.targets) != 1 or not isinstance(given.value, cst.Call):
        return []
    target, of = given.targets[0].target, source.enclosing(given, cst.ClassDef)
    name = source.code(target)
    if isinstance(target, cst.Attribute):
        name = f"{of.name.value if of is not None else ''}.{target.attr.value}"
    return [given.value] if name in names else []


def forward_only(cost: LineCost, share: float) -> Scale:
    """``share`` (0 to 1) of a line's backward pass less, at most."""
    left = max(0.0, 1 - share * cost.backward_ms / cost.step_ms) if cost.step_ms > 0 else 1.0
    return Scale((cost.place,), device=left, host=left, at_most=True)
