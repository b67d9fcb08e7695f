"""What is compiled with a function: what it calls, unless a loop waits for the device or turns too often."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import libcst as cst

from warpline.model import costs as figures
from warpline.model.profile import LineCost
from warpline.rulekit.calling import MOSTLY, Function, below, callers, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.kernels import COMPILED, is_product
from warpline.rulekit.terms import function_at
from warpline.syntax.source import Source
from warpline.wire.run import CompileEvent

#: Turns of a loop up to which a function is compiled.
MOST_TURNS = figures.bound("turns-compiled")
#: Operators of each turn in what MOST_TURNS was timed with.
_A_TURN = 4
#: Torch's operators of recurrent layers (`nn.LSTM`, ...). torch.compile stops there, but not at their cells.
RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu", "_cudnn_rnn", "miopen_rnn"})
#: Operators at which torch.compile stops: what Python goes on with is not known before they have run.
_READS = ("aten::_local_scalar_dense", "aten::nonzero")


def in_order(context: Context, costs: Sequence[LineCost]) -> list[LineCost]:
    """The lines of a function as they run, each after the lines of the functions that it calls; also of its
    lines without a kernel that call another."""
    own, functions = {cost.place for cost in costs}, {function_of(cost) for cost in costs}
    calling = [one for one in context.profile.lines if one.called and function_of(one) in functions]
    found: dict[tuple[str, int], LineCost] = {}
    for cost in sorted([*costs, *calling], key=lambda cost: cost.line):
        inner = [line for line in below(context, cost) if line.place not in own]
        for line in (*sorted(inner, key=lambda line: line.place), cost):
            found.setdefault(line.place, line)
    return list(found.values())


def alone_in(context: Context, own: Sequence[LineCost], inside: Sequence[LineCost]) -> list[LineCost]:
    """``inside`` without the functions that lines outside of it make more than a few of the calls of, but for
    those of ``own``: compiled code runs only its own calls of them."""
    left, functions = list(inside), {function_of(cost) for cost in own}
    while True:
        places = {cost.place for cost in left}
        shared = set[Function]()
        for function in {function_of(cost) for cost in left} - functions:
            calls = callers(context, function)
            mine = sum(call.calls for call in calls if call.place in places)
            if mine < MOSTLY * sum(call.calls for call in calls):
                shared.add(function)
        if not shared:
            return left
        left = [cost for cost in left if function_of(cost) not in shared]


def reached_ms(inside: Sequence[LineCost]) -> float:
    """The time of lines that are compiled, without their matrix products, which stay."""
    return sum(
        max(0.0, cost.step_ms - sum(op.device_ms for op in cost.ops if is_product(op.name) and op.launches))
        for cost in inside
    )


def breaks_at(context: Context, source: Source, function: cst.FunctionDef) -> int | None:
    """A line in a loop of the function where Python reads a number of a tensor.

    torch.compile stops at such a line, and it does not go on within a loop: the whole function runs as it
    was, and only what it calls is compiled.
    """
    costs = context.costs_of(source, function)
    return next((one.line for one in costs if _reads(one) and _in_loop(source, function, one.line)), None)


def is_recurrent(cost: LineCost) -> bool:
    """Whether a recurrent layer of torch's is called at the line."""
    return any(op.name.removeprefix("aten::") in RECURRENT for op in cost.ops)


def not_compiled(context: Context, inside: Collection[LineCost]) -> set[tuple[str, int]]:
    """``(file, line)`` of those lines of compiled functions that torch.compile leaves as they are.

    It stops at a recurrent layer (unless `torch._dynamo.config.allow_rnn` is set), and compiles nothing after
    it in the same function. It stops where Python reads a number as well, and goes on after it. Each stop
    cuts all functions that are running: those that are in a loop there run as they were, and only what they
    call is compiled (counted with torch 2.13).
    """
    # Below a line that a library is called at, the library's function has the layer.
    layers = [cost for cost in inside if is_recurrent(cost) and not cost.inside]
    found = {cost.place for at in layers for cost in _of(function_of(at), inside) if cost.line >= at.line}
    for stop in calls_around((*layers, *filter(_reads, inside)), inside):
        if repeats(context, stop):
            found |= {cost.place for cost in _of(function_of(stop), inside)}
    return found


def calls_around(costs: Iterable[LineCost], inside: Collection[LineCost]) -> list[LineCost]:
    """The lines ``costs``, and those of ``inside`` that call their functions, by any number of calls."""
    found, seen = list(dict.fromkeys(costs)), set[Function]()
    for cost in found:  # grows
        own = function_of(cost)
        if own not in seen:
            seen.add(own)
            found += [call for call in inside if own in call.called and call not in found]
    return found


def repeats(context: Context, cost: LineCost) -> bool:
    """Whether the line is in a loop of its function."""
    source = context.source(cost.file)
    function = function_at(source, cost.line)
    return function is not None and _in_loop(source, function, cost.line)


def _reads(cost: LineCost) -> bool:
    """Whether Python gets a number or a size there that is not known before; a copy does not stop it."""
    return any(op.name in _READS and op.phase == "forward" for op in cost.ops)


def _of(function: Function, inside: Iterable[LineCost]) -> list[LineCost]:
    return [cost for cost in inside if function_of(cost) == function]


def skipped_at(context: Context, source: Source, function: cst.FunctionDef) -> CompileEvent | None:
    """The graph break for which torch.compile compiled nothing of the function: it cannot go
    on after a break within a loop, for one."""
    if regions_of(context, source, function):
        return None
    return next(_events(context, source, function, "graph_break"), None)


def _events(context: Context, source: Source, function: cst.FunctionDef, kind: str) -> Iterator[CompileEvent]:
    for event in context.profile.facts.compile_events:
        if event.kind == kind and event.file == source.path and function_at(source, event.line) is function:
            yield event


def calls_from_compiled(context: Context, cost: LineCost) -> list[LineCost]:
    """The lines of compiled functions that call the line's function, by any number of calls: each of them is
    cut in two there where the function has a graph break."""
    found: dict[tuple[str, int], LineCost] = {}
    reached = [function_of(cost)]
    for function in reached:
        for call in callers(context, function):
            source = context.source(call.file)
            within = function_at(source, call.line)
            if within is not None and regions_of(context, source, within):
                found[call.place] = call
            if function_of(call) not in reached:
                reached.append(function_of(call))
    return list(found.values())


def regions_of(context: Context, source: Source, function: cst.FunctionDef) -> frozenset[str]:
    """The compiled code (torch's numbers) in which Inductor made kernels of lines of the function."""
    own = source.extent(function)
    return frozenset(
        kernel.region
        for kernel in context.profile.facts.compiled_kernels
        if any(file == source.path and line in own for file, line, _ in kernel.lines)
    )


def compiled_again(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    """Whether torch.compile compiled the function again and again: it is compiled, as far as that goes."""
    return any(_events(context, source, function, "recompile"))


def unrolled(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    """Whether a loop of the function, or of one that it calls, turns so often that it should not be compiled:
    torch.compile writes each turn out, and compiles for minutes."""
    within = {(source.path, function): None}
    for cost in lines_in(context, source, function):
        for line in below(context, cost):
            inner = function_at(context.source(line.file), line.line) if cost.called else None
            if inner is not None:
                within[line.file, inner] = None
    return any(_turns_often(context, context.source(path), one) for path, one in within)


def written_out(inside: Sequence[LineCost], calls: float) -> bool:
    """Whether loops make so many operators of a function that compiling it takes minutes. ``inside``: the
    lines that are compiled with it, ``calls``: how often it runs. What loops call counts, too."""
    once = sum(_operators(cost) / max(1.0, cost.calls) for cost in inside)
    each = sum(map(_operators, inside)) / max(1.0, calls)
    return each > MOST_TURNS * _A_TURN and each > 2 * once


def runs_compiled(inside: Sequence[LineCost]) -> bool:
    """Whether lines call code that is compiled already."""
    return any(op.name.startswith(COMPILED) for cost in inside for op in cost.ops)


def _turns_often(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    most = MOST_TURNS * max(1.0, calls_of(context, source, function))
    return any(
        (cost.calls > most and cost.launches + len(cost.ops) > 0 and _in_loop(source, function, cost.line))
        or (_operators(cost) > _A_TURN * most and _has_comprehension(source, function, cost.line))
        for cost in lines_in(context, source, function)
    )


def calls_of(context: Context, source: Source, function: cst.FunctionDef) -> float:
    """How often a function ran a step, by its lines: those in loops ran more often. A loop's first line runs
    once more than its body each time, which tells where all of the function is a loop (over parameters)."""
    costs = [cost for cost in lines_in(context, source, function) if cost.calls > 0]
    calls = [cost.calls for cost in costs]
    for loop in source.nodes(cst.For, cst.While, within=function):
        if source.loops(loop) or source.enclosing(loop, cst.FunctionDef) is not function:
            continue
        head, body = source.line(loop), source.line(loop.body.body[0])
        begun = next((cost.calls for cost in costs if cost.line == head), 0.0)
        turned = next((cost.calls for cost in costs if cost.line == body != head), 0.0)
        if begun > turned > 0:
            calls.append(begun - turned)
    return min(calls, default=0.0)


def lines_in(context: Context, source: Source, function: cst.FunctionDef) -> list[LineCost]:
    """The lines of a function's body: that of ``def`` runs where the function is made."""
    begun = source.line(function.body.body[0])
    return [cost for cost in context.costs_of(source, function) if cost.line >= begun]


def head_of(context: Context, source: Source, function: cst.FunctionDef) -> list[LineCost]:
    """The costs at a function's decorators and its ``def``: Python places the start of its code there."""
    first = source.line(function.decorators[0] if function.decorators else function)
    return context.costs_within(source.path, first, source.line(function.body.body[0]) - 1)


def _operators(cost: LineCost) -> float:
    """Operators of a line's forward pass; of compiled code, the kernels."""
    return sum(
        op.launches if op.name.startswith(COMPILED) else op.count
        for op in cost.ops
        if op.phase == "forward" and op.outer
    )


def _has_comprehension(source: Source, function: cst.FunctionDef, line: int) -> bool:
    found = source.at(line, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
    return any(source.inside(one, function) for one in found)


def _in_loop(source: Source, function: cst.FunctionDef, line: int) -> bool:
    """Whether the line is in a loop of the function."""
    statement = source.statement_at(line)
    return statement is not None and any(source.inside(one, function) for one in source.loops(statement))
