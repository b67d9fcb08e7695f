"""Gradients that are cleared before each step of an optimizer that takes none in the recorded steps, as where
a critic makes many steps for one of the generator. The record does not show what becomes of them, the text
does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph
from warpline.rulekit.graph.storages import storages
from warpline.rulekit.optimizer_step import parameter_shapes
from warpline.rulekit.origins import parameter_of
from warpline.syntax.source import Source, alone, called_name, is_method, only_target, receiver, short_name
from warpline.wire.dataflow import Backward, Frame, running
from warpline.wire.run import Site
from warpline.wire.sites import Optimizer

_READING = ("clip_grad_norm_", "clip_grad_value_", "get_total_norm", "unscale_")
_SCHEDULERS = "torch.optim.lr_scheduler."
#: Not those of the recorded passes: it stands for all that are made at another time.
_AT_ANOTHER_TIME = -2

#: A step of an optimizer, and the lines from where its gradients are cleared to it.
_Cleared = tuple[Source, range]


def passes_of(context: Context, graph: Graph) -> tuple[Backward, ...]:
    """The recorded passes. Gradients that are cleared later are among ``cleared``, and one more pass, in no
    recorded step, is what their optimizer reads them of."""
    flow = graph.flow
    passes, trained = [], set[int]()
    for one in flow.passes:
        here = {value for other in flow.passes if other.stack == one.stack for value in other.read}
        found = {*one.left, *one.cleared} - here - {*flow.unheld}
        site = _optimizer_of(context, graph, found)
        frames = [flow.frames[at] for at in running(flow, one.stack)]
        if site is not None and _clears_first(context, site, frames):
            left = tuple(value for value in one.left if value not in found)
            one = replace(one, left=left, cleared=tuple(sorted({*one.cleared, *found})))
            trained |= found
        passes.append(one)
    later = Backward(-1, _AT_ANOTHER_TIME, read=tuple(sorted(trained)))
    return (*passes, later) if trained else flow.passes


def _optimizer_of(context: Context, graph: Graph, values: set[int]) -> Site | None:
    """The only optimizer that may have these parameters, by their shapes."""
    # A parameter that an optimizer wrote to is another value of the same storage.
    shapes = Counter(map(graph.shape, set(map(storages(graph), values))))
    sites = context.sites(Optimizer.KIND) if shapes else []
    taking = [site for site in sites if shapes <= Counter(parameter_shapes([site]))]
    return taking[0] if len(taking) == 1 else None


def _clears_first(context: Context, site: Site, frames: list[Frame]) -> bool:
    """Whether the gradients are cleared before each step of this optimizer, and neither what runs in
    ``frames`` nor anything that reads gradients is between what makes them and that."""
    source = context.source(site.file)
    made = alone(source.statement_at(site.line))
    name = short_name(only_target(made))
    steps = _steps(context, name) if name else []
    taken = {(where.path, line) for where, call in steps for line in where.extent(call)}
    if not steps or not taken.issuperset(site.uses):
        return False
    clearing = {name}
    call = made.value if isinstance(made, cst.Assign) else None
    given = source.argument(call, "params", 0) if isinstance(call, cst.Call) else None
    if given is not None and is_method(given.value, "parameters"):
        clearing.add(short_name(receiver(given.value)))
    found = [(where, _since_cleared(where, call, clearing)) for where, call in steps]
    known = [(where, lines) for where, lines in found if lines is not None]
    return len(known) == len(found) and not _between(context, known, frames)


def _steps(context: Context, name: str) -> list[tuple[Source, cst.Call]]:
    """The calls that take a step of what is called ``name`` everywhere. Empty where another name may stand
    for it, too."""
    found = []
    for source in context.sources():
        for one in source.nodes(cst.Name):
            if one.value != name:
                continue
            above = source.parent(one)
            named = above if isinstance(above, cst.Attribute) and above.attr is one else one
            call = _stepping(source, named)
            if call is not None:
                found.append((source, call))
            elif not _keeps_its_name(context, source, named, name):
                return []
    return found


def _stepping(source: Source, named: cst.CSTNode) -> cst.Call | None:
    """``optimizer.step()`` or ``scaler.step(optimizer)``."""
    above = source.parent(named)
    call = source.taking(named) or source.parent(above) if above is not None else None
    held = isinstance(above, cst.Attribute) and above.value is named
    return call if is_method(call, "step") and (held == (call.func is above)) else None


def _keeps_its_name(context: Context, source: Source, named: cst.CSTNode, name: str) -> bool:
    above, call = source.parent(named), source.taking(named)
    if isinstance(above, cst.Arg) and above.keyword is named:
        return True
    if call is not None and isinstance(above, cst.Arg):
        if source.name(call.func).startswith(_SCHEDULERS) or is_method(call, "unscale_"):
            return True
        called = [
            one
            for where in context.sources()
            for one in where.nodes(cst.FunctionDef)
            if one.name.value == called_name(call)
        ]
        return bool(called) and all(parameter_of(one, above, call) == name for one in called)
    if isinstance(above, cst.Attribute):
        return above.attr.value != "step"
    if isinstance(above, cst.Assign):
        return short_name(only_target(above)) == name
    bound = isinstance(named, (cst.Name, cst.Attribute)) and source.binds(named)
    return bound or isinstance(above, cst.Param)


def _since_cleared(source: Source, step: cst.Call, names: set[str]) -> range | None:
    """The lines from the ``zero_grad()`` that each way to the step comes by; None where there is none in the
    same round of the innermost loop."""
    part = source.statement(step)
    while part is not None and not isinstance(part, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef)):
        block = source.block(part)
        for before in reversed(block[: block.index(part)]) if part in block else ():
            own = alone(before)
            call = own.value if isinstance(own, cst.Expr) else None
            if is_method(call, "zero_grad") and short_name(receiver(call)) in names:
                return range(source.line(before), source.extent(step).stop)
        above = source.parent(part)
        part = source.statement(above) if above is not None else None
    return None


def _between(context: Context, cleared: list[_Cleared], frames: list[Frame]) -> bool:
    """Whether a pass that runs in ``frames`` may be made between clearing and step, or whether something
    reads gradients at another place, in lines that the recorded steps did not run."""
    within = {(source.path, line) for source, lines in cleared for line in lines}
    named = {
        name.value
        for source, lines in cleared
        for name in source.nodes(cst.Name)
        if source.line(name) in lines
    }
    for frame in frames:
        source = context.source(frame.file)
        statement = source.statement_at(frame.line)
        function = source.enclosing(statement, cst.FunctionDef) if statement is not None else None
        if frame.place in within or (function is not None and function.name.value in named):
            return True
    return any(place not in within and context.cost(*place) is None for place in _reading(context))


def _reading(context: Context) -> Iterator[tuple[str, int]]:
    for source, call in context.calls(*_READING):
        yield source.place(call)
    for source in context.sources():
        for node in source.nodes(cst.Attribute):
            if node.attr.value == "grad" and not source.name(node).startswith("torch."):
                yield source.place(node)
