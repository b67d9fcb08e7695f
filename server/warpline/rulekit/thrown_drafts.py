"""Findings on gradients that an optimizer's ``zero_grad`` clears before its ``step`` reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Together
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.cleared_later import passes_of
from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.graph.graph import Node
from warpline.rulekit.graph.storages import storages
from warpline.rulekit.graph.thrown import Thrown, Visits
from warpline.rulekit.kernels import is_product
from warpline.rulekit.optimizer_step import parameter_shapes
from warpline.rulekit.saving import Spent
from warpline.rulekit.ungraphed import refuse_ungraphed
from warpline.rulekit.unheld_drafts import forward_only
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source
from warpline.wire.dataflow import Backward, Frame, running

#: Of a layer's backward products, one is for its input and one for its weight, of the same size.
_OF_WEIGHTS = 0.5
_FOR_PART = (
    "call `requires_grad_(False)` on this part of the model before the line, and `requires_grad_(True)` "
    "after it"
)
_BY_HAND = "call `.detach()` on what is computed here, or compute it under `torch.no_grad()`"


def thrown_away(context: Context) -> Iterator[Draft]:
    """Parts of the model that a backward pass goes through, or computes the weights' gradients of, although
    nothing reads them before they are cleared."""
    flow = context.profile.facts.dataflow
    graph = whole_graph(flow)
    if graph is None or not flow.passes or context.sites("parallel"):
        return
    visits = Visits(graph, passes_of(context, graph))
    calls: dict[int, list[Node]] = {}
    for thrown in visits.found:
        for node in visits.reading(thrown.alone, thrown.parameters):
            frame = visits.only(visits.alone, node)
            if frame is not None:
                calls.setdefault(frame, []).append(node)
    if calls:
        yield from _alone(context, visits, calls)
    for thrown in visits.by_call:
        yield from _beside(context, visits, thrown)


def _alone(context: Context, visits: Visits, calls: dict[int, list[Node]]) -> Iterator[Draft]:
    shares = visits.shares(visits.alone)
    spent = Spent(context.costs(shares), lambda cost: cost.backward_ms * shares[cost.place])
    if not spent:
        return
    # The result of the last call is what goes on to the part that is trained.
    last = max(calls, key=lambda frame: max(node.index for node in calls[frame]))
    yield context.draft(
        visits.flow.frames[last].place,
        "The backward pass takes {spent} of each step here ({share}) for gradients that are cleared before "
        "anything reads them.",
        context.spent("backward pass", spent.total),
        cause=spent.hottest.place,
        cost_ms=spent.total,
        change=Together(tuple(forward_only(cost, ms / cost.backward_ms) for cost, ms in spent.items())),
        fixes=[partial(_without_graph, context, visits, sorted(calls)), _BY_HAND],
    )


def _beside(context: Context, visits: Visits, thrown: Thrown) -> Iterator[Draft]:
    reading = visits.reading(thrown.beside, thrown.parameters)
    shares = visits.shares(reading, weighted=True)

    def weights_ms(cost: LineCost) -> float:
        products = sum(op.device_ms for op in cost.ops if op.phase == "backward" and is_product(op.name))
        return products * shares[cost.place] * _OF_WEIGHTS

    spent = Spent(context.costs(shares), weights_ms)
    attacked = not thrown.backward.read
    found = (visits.only(thrown.whole, node, weighted=True) for node in reading)
    frames = [frame for frame in found if frame is not None]
    if not frames or not spent:
        return
    place = visits.flow.frames[frames[0]].place
    yield context.draft(
        place,
        "The backward pass goes through this to "
        + ("the gradient of a tensor" if attacked else "other parameters")
        + ", and computes the gradients of the parameters here on its way. They are cleared before anything "
        "reads them: {spent} a step ({share}).",
        context.spent("gradients of weights", spent.total),
        cause=spent.hottest.place,
        cost_ms=spent.total,
        change=spent.without(context),
        fixes=[partial(_for_one if attacked else _for_optimizer, context, visits, thrown)],
    )


def _for_one(context: Context, visits: Visits, thrown: Thrown) -> Fix:
    """``backward(inputs=[tensor])`` for the one tensor whose gradient the function reads after it. Raises
    Refused."""
    by_hand = "call `torch.autograd.grad(loss, tensor)`, or `backward(inputs=[tensor])`"
    source, call = _called(context, visits, thrown, by_hand)
    function = source.enclosing(call, cst.FunctionDef)
    if function is None or len(visits.leaves(thrown.backward)) != 1:
        raise Refused(by_hand)
    read = {
        node.value.value if isinstance(node.value, cst.Name) else ""
        for node in source.nodes(cst.Attribute, within=function)
        if node.attr.value == "grad" and source.name(node) != "torch.autograd.grad"
    }
    if len(read) != 1 or "" in read:
        raise Refused(by_hand)
    (tensor,) = read
    edits = Edits(source).set_argument(call, "inputs", f"[{tensor}]")
    return edits.fix("Compute the gradient of this tensor only", "unsafe")


def _for_optimizer(context: Context, visits: Visits, thrown: Thrown) -> Fix:
    """``backward(inputs=[...])`` for the parameters of the optimizer that takes the step after it. Raises
    Refused where the pass may be for something else, too, or its optimizer is not known."""
    source, call = _called(context, visits, thrown, _FOR_PART)
    if any(context.calls("checkpoint", "checkpoint_sequential")):
        raise Refused(_FOR_PART)  # those with a graph of their own do not know `inputs`
    known = {one.backward.stack: one.parameters for one in visits.by_call}
    here = [one for one in visits.passes if _place(visits, one) == _place(visits, thrown.backward)]
    found: dict[str, bool] = {}
    storage = storages(visits.graph)
    for one in here:  # also those that a caller makes with another optimizer
        # A parameter that an optimizer wrote to is another value of the same storage.
        shapes = Counter(map(visits.graph.shape, set(map(storage, one.read))))
        taking = [own for own in context.sites("optimizer") if shapes <= Counter(parameter_shapes([own]))]
        uses = [(own, line) for own in taking for file, line in own.uses if file == source.path]
        named = {name: own for own, line in uses if (name := _stepped(source, call, line))}
        if {*one.left, *one.cleared} - known.get(one.stack, frozenset()) or visits.leaves(one) or not named:
            raise Refused(_FOR_PART)
        for name, own in named.items():
            found[name] = found.get(name, True) and shapes == Counter(parameter_shapes([own]))
    if len(found) != 1:
        raise Refused(_FOR_PART)
    ((name, all_of_it),) = found.items()
    some = "" if all_of_it else " if p.requires_grad"
    taken = f'[p for group in {name}.param_groups for p in group["params"]{some}]'
    edits = Edits(source).set_argument(call, "inputs", taken)
    return edits.fix("Compute the gradients that the optimizer takes", "unsafe")


def _place(visits: Visits, one: Backward) -> tuple[str, int] | None:
    innermost = next(running(visits.flow, one.stack), None)
    return visits.flow.frames[innermost].place if innermost is not None else None


def _called(context: Context, visits: Visits, thrown: Thrown, by_hand: str) -> tuple[Source, cst.Call]:
    """The call of ``backward`` that makes the pass, which is asked for all gradients. Raises Refused."""
    place = _place(visits, thrown.backward)
    if place is None:
        raise Refused(by_hand)
    source = context.source(place[0])
    calls = source.calls(place[1], "backward")
    if len(calls) != 1 or source.argument(calls[0], "inputs", 3) is not None or source.unpacked(calls[0]):
        raise Refused(by_hand)
    return source, calls[0]


def _stepped(source: Source, backward: cst.Call, line: int) -> str:
    """The optimizer whose ``step`` that line calls after ``backward`` in the same function, also for a
    scaler, as code that means the same at ``backward``; else ""."""
    scope = source.enclosing(backward, cst.FunctionDef)
    closures = {one.name.value for one in source.nodes(cst.FunctionDef)}
    for call in source.calls(line, "step"):
        given = call.args[0].value if call.args else None
        scaled = given is not None and source.name(given) not in closures
        held = given if scaled else getattr(call.func, "value", None)
        name = source.code(held) if isinstance(held, (cst.Name, cst.Attribute)) else ""
        if source.enclosing(call, cst.FunctionDef) is not scope or line <= source.line(backward):
            continue
        bound = source.bindings(name.partition(".")[0], scope)
        if name and all(source.line(one) < source.line(backward) for one in bound):
            return name
    return ""


def _without_graph(context: Context, visits: Visits, calls: list[int]) -> Fix:
    """Each statement of the ``calls`` under ``torch.no_grad()``, or their results detached where the
    statement computes something that is trained as well. Raises Refused."""
    frames = [visits.flow.frames[call] for call in calls]
    if len({frame.file for frame in frames}) > 1:
        raise Refused(_BY_HAND)
    source = context.source(frames[0].file)
    edits = Edits(source)
    whole: list[cst.SimpleStatementLine] = []
    detached = 0
    for call, frame in zip(calls, frames, strict=True):
        statement = source.statement_at(frame.line)
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) > 1:
            raise Refused(_BY_HAND)
        refuse_ungraphed(source, statement)
        if not visits.shares_casts and _computes_only(visits, source, statement):
            whole += [statement] if statement not in whole else []
        else:
            node = _written(source, statement, frame)
            if len(visits.results(call)) != 1:
                raise Refused(_BY_HAND)
            edits.replace(node, f"{source.code(node)}.detach()")
            detached += 1
    for statement in whole:
        edits.wrap([statement], f"with {edits.add_import('torch.no_grad', 'import torch')}():")
    return edits.fix("Detach this" if detached else "Wrap this in torch.no_grad()", "unsafe")


def _computes_only(visits: Visits, source: Source, statement: cst.SimpleStatementLine) -> bool:
    """Whether nothing that the statement computes is trained by any pass, and no caller goes on with it."""
    if isinstance(statement.body[0], cst.Return):
        return False
    lines = source.extent(statement)
    return all(
        visits.under(number) <= visits.alone
        for number, frame in enumerate(visits.flow.frames)
        if frame.file == source.path and frame.line in lines
    )


def _written(source: Source, statement: cst.SimpleStatementLine, frame: Frame) -> cst.Call:
    if not frame.span or not source.code(statement).isascii():
        raise Refused(_BY_HAND)
    last, start, end = frame.span
    span = (frame.line, start), (last, end)
    for call in source.nodes(cst.Call, within=statement):
        if source.span(call) == span:
            return call
    raise Refused(_BY_HAND)
