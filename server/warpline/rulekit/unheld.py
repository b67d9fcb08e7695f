"""Parameters that no optimizer has: the line that calls their part of the model, and what their gradients
cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below, callers, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.graph.thrown import Visits
from warpline.rulekit.graph.unheld import Unheld
from warpline.rulekit.kernels import is_product
from warpline.rulekit.optimizer_step import parameter_shapes
from warpline.rulekit.origins import called_as
from warpline.syntax.source import Source
from warpline.wire.sites import Optimizer

#: Sums of a weight's gradient with what is there already.
_SUMS = ("aten::add_", "aten::add")
_CONVOLUTION = "aten::convolution_backward"  # (gradient of the result, image, filters, ...)
_DEPTH = 8  # callers that are followed outwards: modules inside modules, chosen


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
    them ask for gradients, or that call a function with such lines: fine-tuning in stages."""
    found = [(source, node) for source in context.sources() for node in _training_more(source)]
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
            called = loop.iter.func if loop is not None and isinstance(loop.iter, cst.Call) else None
            if isinstance(called, cst.Attribute) and called.attr.value in ("parameters", "named_parameters"):
                yield source.code(called.value).rpartition(".")[2]


def _training_more(source: Source) -> Iterator[cst.CSTNode]:
    for call in source.nodes(cst.Call):
        name = source.name(call.func)
        method = name.rpartition(".")[2]
        given = source.argument(call, "requires_grad", 0)
        if (
            (name.startswith("torch.optim.") and name.count(".") == 2 and method[:1].isupper())
            or (method == "requires_grad_" and (given is None or source.literal(given.value) is not False))
            or method == "add_param_group"
        ):
            yield call
    for assigned in source.nodes(cst.Assign):
        asks = any(source.code(one.target).endswith(".requires_grad") for one in assigned.targets)
        if asks and source.literal(assigned.value) is not False:
            yield assigned


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
