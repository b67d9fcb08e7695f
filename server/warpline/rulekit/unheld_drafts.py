"""Findings on gradients that no optimizer takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Change, Scale, Together
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.calling import MOSTLY, below, callers, function_of, is_forward, model_born, part_called
from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.graph import graph_of, whole_graph
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.parts import parts
from warpline.rulekit.graph.thrown import Visits
from warpline.rulekit.graph.unheld import Unheld, calls_of_unheld, of_unheld
from warpline.rulekit.kernels import is_product
from warpline.rulekit.message import count
from warpline.rulekit.model_lines import on_module
from warpline.rulekit.optimizer_step import parameter_shapes
from warpline.rulekit.origins import called_as
from warpline.rulekit.saving import Spent, leaving
from warpline.rulekit.ungraphed import without_graph
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, alone, is_method, only_target, receiver
from warpline.wire.sites import Module, Optimizer, Untrained, facts_of

#: Sums of a weight's gradient with what is there already.
_SUMS = ("aten::add_", "aten::add")
_CONVOLUTION = "aten::convolution_backward"  # (gradient of the result, image, filters, ...)
_DEPTH = 8  # callers that are followed outwards: modules inside modules, chosen

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
    own = Spent(context.costs(unheld.shares), lambda cost: cost.backward_ms * unheld.shares[cost.place])
    if not own:
        return
    hottest = own.hottest
    place = unheld_at(context, unheld, hottest)
    if place is not None:
        place = part_called(context, place, lambda cost: cost.total_backward_ms)
    # Where the text does not tell the calls of one class apart, the stacks do.
    calls = [one for one in context.costs(unheld.calls) if place is None or place in below(context, one)]
    outer = max(calls, key=lambda cost: cost.total_backward_ms, default=None)
    if place is None and outer is not None and not outer.total_backward_ms:
        return  # its results are detached: the backward pass does not come here
    if place is None or (outer and place.total_backward_ms < MOSTLY * outer.total_backward_ms):
        place = outer
    modules = _whole(context, graph)
    if place is None and not modules:
        return
    lines, spent = [*own], own.total
    whole = sum(cost.backward_ms for cost in own)
    if place is not None and place.place not in unheld.shares:  # else they are on the line, or beside it
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
        code = on_module(context, edits, {facts.type or ""}, "requires_grad_", "False")
        edits.replace(found[0], code.format(model=source.code(found[0])))
    return edits.fix("Ask for no gradients of these weights", "unsafe")


def _held_at(source: Source, line: int, names: list[str]) -> list[cst.BaseExpression]:
    """The call whose result the statement on that line gives to what is known to hold the module."""
    given = alone(source.statement_at(line))
    target = only_target(given)
    if not isinstance(given, cst.Assign) or target is None or not isinstance(given.value, cst.Call):
        return []
    of = source.enclosing(given, cst.ClassDef)
    name = source.code(target)
    if isinstance(target, cst.Attribute):
        name = f"{of.name.value if of is not None else ''}.{target.attr.value}"
    return [given.value] if name in names else []


def forward_only(cost: LineCost, share: float) -> Scale:
    """``share`` (0 to 1) of a line's backward pass less, at most."""
    left = max(0.0, 1 - share * cost.backward_ms / cost.step_ms) if cost.step_ms > 0 else 1.0
    return Scale((cost.place,), device=left, host=left, at_most=True)


def unheld_at(context: Context, unheld: Unheld, cost: LineCost) -> LineCost | None:
    """The outermost line that computes nothing else of parameters, from ``cost`` outwards.

    A teacher and its pupil may be of one class, and so on the same lines: then the two are called by two
    lines of one function, which run in the order of their operators. None where that does not tell which is
    which.
    """
    apart = unheld.shares.get(cost.place) == 1
    order = unheld.order.get(function_of(cost), [])
    for _ in range(_DEPTH):
        calling = callers(context, function_of(cost))
        if apart:
            if unheld.order.get(function_of(cost), [True]) != [True] or len(calling) != 1:
                return cost
            if any(own != [True] for own in _called(context, unheld, calling[0])):
                return cost
            cost = calling[0]
        elif len(calling) == 1:
            cost = calling[0]
        elif len(calling) == len(order) and {function_of(one) for one in calling} == {
            function_of(calling[0])
        }:
            return calling[order.index(True)]
        else:
            return None
    return cost


def trained_later(context: Context) -> bool:
    """Whether the script has lines, not run so far, that give an optimizer more parameters or let more of
    them ask for gradients, or that call a function with such lines: fine-tuning in stages. Also those that
    read gradients where no optimizer does: they may have been added up."""
    taking = _training_more if context.sites(Optimizer.KIND) else _reading_gradients
    found = [(source, node) for source in context.sources() for node in taking(source)]
    names: set[str] = set()
    while found:
        if any(context.reached.node(source, node) is False for source, node in found):
            return True
        telling = ((source, node) for source, node in found if not _is_bare(source, node))
        around = ((source, source.enclosing(node, cst.FunctionDef)) for source, node in telling)
        fresh = {called_as(source, function) for source, function in around if function is not None} - names
        names |= fresh
        found = [
            (source, call)
            for source in context.sources()
            for call in (source.nodes(cst.Call) if fresh else ())
            if source.name(call.func).rpartition(".")[2] in fresh
        ]
    return False


def _is_bare(source: Source, node: cst.CSTNode) -> bool:
    """Whether this is ``x.requires_grad_()``, as of a tensor."""
    name = source.name(node.func) if isinstance(node, cst.Call) and not node.args else ""
    return name.endswith("requires_grad_")


def asking(context: Context) -> Iterator[str]:
    """Names of modules in loops over whose parameters each of these may be asked for gradients."""
    for source in context.sources():
        for node in _training_more(source):
            loop = source.enclosing(node, cst.For)
            over = loop.iter if loop is not None else None
            if is_method(over, "parameters", "named_parameters") and (held := receiver(over)) is not None:
                yield source.code(held).rpartition(".")[2]


def _training_more(source: Source) -> Iterator[cst.CSTNode]:
    for call in source.nodes(cst.Call):
        name = source.name(call.func)
        method = name.rpartition(".")[2]
        optimizer = name.startswith("torch.optim.") and name.count(".") == 2 and method[:1].isupper()
        asks = method == "requires_grad_" and source.passed(call, "requires_grad", 0) is not False
        if optimizer or asks or method == "add_param_group":
            yield call
    for assigned in source.nodes(cst.Assign):
        asks = any(source.code(one.target).endswith(".requires_grad") for one in assigned.targets)
        if asks and source.literal(assigned.value) is not False:
            yield assigned


def _reading_gradients(source: Source) -> Iterator[cst.CSTNode]:
    yield from _training_more(source)
    for node in source.nodes(cst.Attribute):
        if node.attr.value == "grad" and not source.name(node).startswith("torch."):
            yield node


def _called(context: Context, unheld: Unheld, cost: LineCost) -> list[list[bool]]:
    """``Unheld.order`` of each function that the line calls, directly or through others."""
    reached = {function for line in below(context, cost) for function in line.called}
    return [unheld.order[function] for function in sorted(reached) if function in unheld.order]


def frozen_weights(context: Context, other: Collection[tuple[int, ...]] = ()) -> dict[tuple[int, ...], int]:
    """How many weights of each shape, matrices and filters, ask for gradients and are no optimizer's; without
    those of ``other`` shapes."""
    flow = context.profile.facts.dataflow
    found: dict[tuple[int, ...], int] = {}
    for value in flow.unheld:
        shape = flow.shapes[flow.shape[value]]
        if len(shape) >= 2 and shape not in other:
            found[shape] = found.get(shape, 0) + 1
    return found


def frozen_ms(context: Context) -> Callable[[LineCost], float]:
    """Tells what a line takes for the gradients of such weights: of a shape that no optimizer has, unless the
    line reads no other weights."""
    own, graph = frozen_weights(context), whole_graph(context.profile.facts.dataflow)
    apart = frozen_weights(context, parameter_shapes(context.sites(Optimizer.KIND)))
    alone: dict[tuple[str, int], float] = {}
    if own != apart and graph is not None:
        visits = Visits(graph)
        alone = visits.shares(visits.reading(visits.trained, frozenset(graph.flow.unheld)), weighted=True)
    return lambda cost: for_weights_ms(own if alone.get(cost.place) == 1 else apart, cost)


def for_weights_ms(weights: Collection[tuple[int, ...]], cost: LineCost) -> float:
    """Time a step of a line's backward products that have the shape of one of ``weights``, and of sums of
    such: they are gradients of it, and not what the backward pass goes on with. A convolution's backward
    pass makes both at once: half of it."""
    spent = 0.0
    for op in cost.ops:
        first, second = (*op.shapes[:2], (), ())[:2]
        if op.phase == "backward" and op.name == _CONVOLUTION and op.shapes[2:3] and op.shapes[2] in weights:
            spent += op.device_ms / 2
        if op.phase != "backward" or len(first) != 2:
            continue
        if is_product(op.name) and len(second) == 2 and (first[0], second[1]) in weights:
            # With as many rows as the weight has, the product for the input's gradient has the same shapes.
            spent += op.device_ms / (2 if second in weights else 1)
        elif op.name in _SUMS and first in weights:
            spent += op.device_ms
    return spent
