"""Batches that a script slices itself, in a loop or a comprehension with one turn a step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.decoding import joins_more
from warpline.rulekit.origins import Origin, is_literal, origin, overridden, parameters, passing
from warpline.rulekit.slice_ends import (
    Loop,
    begins_before,
    ends_after,
    first_slices,
    is_first,
    meant,
    multiples,
)
from warpline.syntax.source import SAME_TURNS, Source, called_name, is_method

#: What runs once a step may differ from that by so much, since steps at the ends of the window are partial.
#: Chosen: halfway to never, and to twice.
ONCE = 0.5

#: Functions that a size is passed through. Chosen: settings are seldom passed on more often.
_CALLS = 3

#: Python writes a loop's header in its own way.
_SPELLING = re.compile(r"[\s()'\"]")


@dataclass(frozen=True, slots=True)
class Slices:
    """``size``: where the number of samples of a batch is written, with ``parts`` the number of batches.

    ``source`` is the loop's file, and ``again`` the same number written out there again. ``draws``: so many
    times that number of samples is a batch."""

    size: Origin
    source: Source
    again: tuple[cst.BaseExpression, ...] = ()
    parts: bool = False
    draws: int = 1

    @property
    def number(self) -> int:
        """The size, or the number of parts."""
        return int(self.size.source.literal(self.size.node))


def sliced(context: Context) -> Iterator[Slices]:
    """The batches of a loop over ``range(0, count, size)`` with ``[at : at + size]`` in it (or a call that
    slices so), over ``range(size, count, size)`` with ``[at - size : at]``, of ``while`` with ``at += size``,
    over ``range(count // size)`` with ``[at * size : (at + 1) * size]``, ``tensor.split(size)`` or
    ``tensor.chunk(parts)``, ``tensor.view(count, size, -1)``, torch's ``BatchSampler(rows, size, drop_last)``
    or ``islice(rows, size)``, or over what a function returns or yields of these. The size may be
    ``count // parts``.

    Only of loops with one turn a step. Sizes that are no plain number, cannot be followed, or are the default
    of an option that the command line gives another value, are left out.
    """
    seen: set[tuple[str, int]] = set()
    for written, found, parts in _sizes_written(context):
        if overridden(context, found) is not None:
            continue
        size = found.source.literal(found.node) if found.editable else None
        if type(size) is int and size > 0 and found.place not in seen:
            seen.add(found.place)
            first, *again = written.sizes
            yield Slices(found, written.source, tuple(again) if found.node is first else (), parts)


def sizes_from_elsewhere(context: Context) -> Iterator[Origin]:
    """The same, of sizes whose value is not in the text, as that of a file of settings: what the only call
    passes for it, as far as it can be followed."""
    for written, found, parts in _sizes_written(context):
        if found.editable or parts or not isinstance(written.sizes[0], (cst.Name, cst.Attribute)):
            continue
        source = written.source
        size: cst.BaseExpression = written.sizes[0]
        for _ in range(_CALLS):
            function = source.enclosing(size, cst.FunctionDef)
            calls = passing(context, source, function, source.code(size)) if function is not None else []
            if len(calls) == 1:
                source, size = calls[0][0], calls[0][2].value
        yield Origin("unknown", source, size, f"`{source.code(size)}`")


def _sizes_written(context: Context) -> Iterator[tuple[_Written, Origin, bool]]:
    files = tuple(context.sources())
    for cost in context.profile.lines:
        source = context.source(cost.file)
        for loop in _loops(source, cost.line):
            written = _written(files, source, loop) if _turns_once(context, source, loop, cost) else None
            if written is not None:
                yield written, *_followed(context, written)


def loops_over_rows(context: Context) -> Iterator[tuple[Source, cst.For]]:
    """Loops with one turn a step over what lists and tensors hold, entry by entry, where no turn computes
    with what the one before has computed. Of steps that are tokens, loops with one call of ``generate`` in
    each turn."""
    found: dict[tuple[str, int], tuple[Source, cst.For]] = {}
    lines, generates = context.profile.lines, generating(context)
    trains = any(cost.backward_ms for cost in lines)
    if not (trains or generates) and joins_more(context):
        return  # a sequence, whose tokens follow each other
    for cost in generates or lines:
        source = context.source(cost.file)
        for loop in _loops(source, cost.line):
            if not isinstance(loop, cst.For) or not (generates or _turns_once(context, source, loop, cost)):
                continue
            named = all(isinstance(one, (cst.Name, cst.Attribute)) for one in _over(source, loop.iter))
            if named and not _is_carried_on(source, loop) and (trains or _is_read(source, loop)):
                found[source.place(loop)] = source, loop
    yield from found.values()


def generating(context: Context) -> list[LineCost]:
    """The lines that call ``generate``, where a new generation began in the timed steps, and the lines that
    call the functions around these."""
    found = [cost for cost in context.profile.lines if cost.tokens is not None and cost.tokens.prefill.count]
    for cost in found:  # grows
        found += [one for one in callers(context, function_of(cost)) if one not in found]
    return found


def _is_read(source: Source, loop: cst.For) -> bool:
    """Whether the loop's body reads the loop variable. Where it does not, each turn computes the same."""
    names = source.nodes(cst.Name, within=loop.target)
    return any(source.reads(one.value, loop.body) for one in names)


def _over(source: Source, over: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """``rows`` and ``marks`` of ``enumerate(zip(rows, marks))``; ``rows`` of ``range(len(rows))``."""
    if isinstance(over, cst.Call) and source.is_named(over.func, "range") and len(over.args) == 1:
        inner = over.args[0].value
        if isinstance(inner, cst.Call) and source.is_named(inner.func, "len") and len(inner.args) == 1:
            over = inner.args[0].value
    if isinstance(over, cst.Call) and source.is_named(over.func, "enumerate", "zip", *SAME_TURNS):
        for arg in over.args:
            if arg.keyword is None:
                yield from _over(source, arg.value)
    else:
        yield over


def _is_carried_on(source: Source, loop: cst.For) -> bool:
    """Whether a name gets a result in the loop, and is read there before, as a hidden state is."""
    for name in source.nodes(cst.Name, within=loop.body):
        assign = source.enclosing(name, cst.Assign) if source.binds(name) else None
        if assign is not None and source.nodes(cst.Call, within=assign.value):
            line = source.line(assign)
            if any(source.line(one) <= line for one in source.reads(name.value, loop.body)):
                return True
    return False


class _Written(NamedTuple):
    """Where a loop over ``over`` has the size of its batches written; with ``parts``, how many there are."""

    source: Source
    over: cst.CSTNode
    sizes: list[cst.BaseExpression]
    parts: bool


def _followed(context: Context, written: _Written) -> tuple[Origin, bool]:
    """Where that number is written, and whether it is the number of batches: also of those that a size
    ``count // parts`` makes of the ``count`` rows that the loop goes over."""
    found = origin(context, written.source, written.sizes[0], ends=_is_size)
    made = _quotient(found.node)
    if made is None or written.parts:
        return found, written.parts
    if found.source.code(made.left) not in written.source.code(written.over):
        return replace(found, kind="unknown"), False
    return origin(context, found.source, made.right), True


def _is_size(source: Source, node: cst.BaseExpression) -> bool:
    return is_literal(source, node) or _quotient(node) is not None


def _quotient(node: cst.BaseExpression) -> cst.BinaryOperation | None:
    """``count // parts``, also in ``int(…)``."""
    if isinstance(node, cst.Call) and called_name(node) == "int" and len(node.args) == 1:
        node = node.args[0].value
    divided = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide)
    return node if divided and isinstance(node, cst.BinaryOperation) else None


def _loops(source: Source, line: int) -> list[Loop | cst.While]:
    """The innermost loop around the statement at ``line``, and what the statement itself loops over."""
    statement = source.statement_at(line)
    if statement is None:
        return []
    around = source.loops(statement)[:1]
    simple = isinstance(statement, cst.SimpleStatementLine)
    return [*around, *(source.nodes(cst.CompFor, within=statement) if simple else [])]


def _turns_once(context: Context, source: Source, loop: Loop | cst.While, cost: LineCost) -> bool:
    """Whether a step is a turn of it: since the run chose this loop, or its lines run so often."""
    chosen = context.profile.manifest.request.loop
    if chosen is not None and chosen.file == source.path:
        if isinstance(loop, cst.While):
            header = f"while {source.code(loop.test)}"
        else:
            header = f"for {source.code(loop.target)} in {source.code(loop.iter)}"
        if _SPELLING.sub("", header) == _SPELLING.sub("", chosen.header):
            return True
    return not isinstance(loop, cst.CompFor) and abs(cost.calls - 1) <= ONCE


def _written(files: Sequence[Source], source: Source, loop: Loop | cst.While) -> _Written | None:
    if isinstance(loop, cst.While):
        sizes = _of_steps(source, loop)
        return _Written(source, loop, sizes, False) if sizes else None
    for where, inner, over in _turns(files, source, loop, loop.iter):
        found = _size(where, inner, over)
        if found is not None:
            return _Written(where, over, *found)
    return None


def _turns(
    files: Sequence[Source], source: Source, loop: Loop, over: cst.BaseExpression, depth: int = 2
) -> Iterator[tuple[Source, Loop, cst.BaseExpression | cst.While]]:
    """What gives ``loop`` its turns: what it iterates over, and what functions of this file (else of the
    other ``files``) that are called there return or yield; each with the loop that has these turns, which may
    be a generator's own."""
    if isinstance(over, cst.Name):
        over = _value(source, loop, over.value) or over
    yield source, loop, over
    calls = source.nodes(cst.Call, within=over) if depth else []
    for name in dict.fromkeys(called_name(call) for call in calls):
        others = (where for where in files if where is not source)
        where = (
            source if source.functions(name) else next((one for one in others if one.functions(name)), source)
        )
        for function in where.functions(name):
            yield from _of_function(files, where, loop, function, depth - 1)


def _of_function(
    files: Sequence[Source], source: Source, loop: Loop, function: cst.FunctionDef, depth: int
) -> Iterator[tuple[Source, Loop, cst.BaseExpression | cst.While]]:
    yielded = (node.value for node in source.nodes(cst.Yield, within=function))
    results = [node.value for node in source.nodes(cst.Return, within=function)]
    for value in (*results, *(one.item for one in yielded if isinstance(one, cst.From))):
        if value is not None:
            yield from _turns(files, source, loop, value, depth)
    yielding = (source.loops(one)[:1] for one in source.nodes(cst.Yield, within=function))
    for inner in dict.fromkeys(one for found in yielding for one in found):
        if isinstance(inner, cst.While):
            yield source, loop, inner
        else:
            yield from _turns(files, source, inner, inner.iter, depth)


def _value(source: Source, loop: Loop, name: str) -> cst.BaseExpression | None:
    """The only value of a name in the function, or the last one before the loop where a statement beside the
    loop gives it."""
    given = source.assigned(name, within=source.enclosing(loop, cst.FunctionDef))
    before = [one for one in given if source.line(one) < source.line(loop)]
    if len(given) > 1 and before and source.statement(before[-1]) in source.block(loop):
        return before[-1]
    return given[0] if len(given) == 1 else None


def taken_sizes(source: Source, loop: cst.For, over: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Where an iterator that ``loop`` takes batches from, one in each turn, has their size; [] for none."""
    found = (_size(source, inner, each) for _, inner, each in _turns((source,), source, loop, over))
    sizes, parts = next((one for one in found if one is not None), ([], False))
    return [] if parts else sizes


def cut_sizes(source: Source, loop: cst.For) -> Iterator[list[cst.BaseExpression]]:
    """Where a loop that takes one batch in pieces has their size: in ``tensor.split(size)``, which may have a
    name, in slices that its turns number, or in what gives it the pieces."""
    cuts = cuts_of(source, loop)
    if cuts is not None:
        if not cuts[1]:
            yield cuts[0]
        return
    found = taken_sizes(source, loop, loop.iter) or multiples(source, loop)
    if found and not source.is_named(loop.iter.func if isinstance(loop.iter, cst.Call) else None, *_TAKE[:1]):
        yield found


def cuts_of(source: Source, loop: cst.For) -> tuple[list[cst.BaseExpression], bool] | None:
    """The sizes in ``tensor.split(size)``, or the number of pieces in ``tensor.chunk(parts)`` with True, of
    pieces that the loop goes over. They may have a name."""
    over = [loop.iter]
    for name in source.nodes(cst.Name, within=loop.iter):
        if name is loop.iter or source.taking(name) is not None:
            given = source.bindings(name.value, source.scope(loop))
            value = source.given(given[0]) if len(given) == 1 else None
            over += [value] if value is not None else []
    calls = [call for one in over for call in source.nodes(cst.Call, within=one)]
    cuts = [call for call in calls if source.is_named(call.func, *_CUTS)]
    return _of_cuts(source, cuts) if cuts else None


def _size(
    source: Source, loop: Loop, over: cst.BaseExpression | cst.While
) -> tuple[list[cst.BaseExpression], bool] | None:
    calls = source.nodes(cst.Call, within=over)
    for call in calls:
        if source.is_named(call.func, *_TAKE) and len(call.args) == 2:
            return [call.args[1].value], False
    if isinstance(over, cst.While):
        return None
    cuts = [call for call in calls if source.is_named(call.func, *_CUTS)]
    if cuts:
        return _of_cuts(source, cuts)
    for call in calls:
        if source.is_named(call.func, "BatchSampler"):
            sizes = _of_sampler(source, loop, over, call)
            return (sizes, False) if sizes else None
        if source.is_named(call.func, *_RANGES):
            sizes = _of_range(source, loop, call)
            return (sizes, False) if sizes else None
        if is_method(call, "view") or is_method(call, "reshape"):
            size = call.args[1].value if len(call.args) > 2 else None
            # The number of rows may be written elsewhere again, as in `len(data) // 16`.
            named = isinstance(size, (cst.Name, cst.Attribute)) and _gives_turns(source, call, over)
            return ([size], False) if size is not None and named else None
    return None


_CUTS = ("split", "chunk", "array_split")
#: They number the rows; the second is tqdm's, the third NumPy's and torch's.
_RANGES = ("range", "trange", "arange")
#: They take so many from an iterator each time.
_TAKE = ("islice", "batched", "chunked")
#: Their arguments, of tensors' methods and of torch's functions.
_SIZES = ("split_size", "split_size_or_sections", "chunks", "indices_or_sections")


def _of_cuts(source: Source, cuts: list[cst.Call]) -> tuple[list[cst.BaseExpression], bool] | None:
    """The sizes in ``x.split(size)`` and ``torch.chunk(x, parts)``: equal ones, of the first dimension."""
    sizes = []
    for call in cuts:
        behind = source.name(call.func) in ("torch.split", "torch.chunk", "numpy.array_split")  # the tensor
        given = (source.argument(call, name, int(behind)) for name in _SIZES)
        size = next((one for one in given if one is not None), None)
        dim = source.argument(call, "dim", 1 + behind)
        if size is None or (dim is not None and source.literal(dim.value) != 0):
            return None
        sizes.append(size.value)
    chunked = {source.is_named(call.func, "chunk", "array_split") for call in cuts}
    if len({source.code(size) for size in sizes}) > 1 or len(chunked) > 1:
        return None
    return sizes, chunked.pop()


def _of_sampler(
    source: Source, loop: Loop, over: cst.BaseExpression, call: cst.Call
) -> list[cst.BaseExpression]:
    """The size of ``BatchSampler(rows, size, drop_last)``, where the loop itself gets the lists of rows; []
    for a loader's, or where the same number stands in the loop with another meaning."""
    size = source.argument(call, "batch_size", 1)
    if size is None or not _gives_turns(source, call, over):
        return []
    body = source.parent(loop) if isinstance(loop, cst.CompFor) else loop.body
    if isinstance(size.value, cst.Integer):
        numbers = source.nodes(cst.Integer, within=body)
        if any(one is not size.value and one.value == size.value.value for one in numbers):
            return []
    return [size.value]


def _gives_turns(source: Source, call: cst.Call, over: cst.BaseExpression) -> bool:
    """Whether a loop over ``over`` has a turn for each element of what the call gives."""
    node: cst.CSTNode | None = call
    while node is not None and node is not over:
        node = source.parent(node)
        if isinstance(node, cst.Call) and not source.is_named(node.func, "enumerate", "zip", *SAME_TURNS):
            return False
    return True


def _of_range(source: Source, loop: Loop, call: cst.Call) -> list[cst.BaseExpression]:
    """The size in a ``range`` and in the slices of the first dimension that it numbers; [] if there is none,
    or the same number stands in the loop with another meaning."""
    body = source.parent(loop) if isinstance(loop, cst.CompFor) else loop
    slices = first_slices(source, body)
    given = [arg.value for arg in call.args if arg.keyword is None]
    if len(given) == 3:
        step = given[2]
        stops = [meant(source, part.upper, body) for part in slices] + _passed_on(source, loop, body)
        ends = [end for stop in stops if (end := ends_after(source, stop, step)) is not None]
        if not ends and source.code(given[0]) == source.code(step):  # the loop numbers the ends of batches
            before = (begins_before(source, part, step, source.code(loop.target)) for part in slices)
            ends = [size for size in before if size is not None]
            ends += ends and [given[0]]
        found = [step, *ends] if ends else []
    else:
        sizes = multiples(source, loop)
        # The number of batches may have a name, as in `count = len(rows) // size`.
        values = [_value(source, loop, one.value) for one in given if isinstance(one, cst.Name)]
        counts = [one for one in (*given, *values) if one is not None]
        known = (source.nodes(cst.Name, cst.Attribute, within=one) for one in counts)
        named = {source.code(one) for some in known for one in some}
        found = sizes if all(source.code(size) in named for size in sizes) else []
    return _all_of_it(source, body, found)


def _of_steps(source: Source, loop: cst.While) -> list[cst.BaseExpression]:
    """The size in ``at += size`` of the loop itself and in the slices that begin at ``at``."""
    for step in source.nodes(cst.AugAssign, within=loop.body):
        if isinstance(step.operator, cst.AddAssign) and source.loops(step)[0] is loop:
            at = source.code(step.target)
            slices = first_slices(source, loop.body)
            begun = (one for one in slices if one.lower is not None and source.code(one.lower) == at)
            stops = [meant(source, one.upper, loop.body) for one in begun]
            ends = [end for stop in stops if (end := ends_after(source, stop, step.value)) is not None]
            if ends:
                return _all_of_it(source, loop, [step.value, *ends])
    return []


def _all_of_it(
    source: Source, body: cst.CSTNode | None, sizes: list[cst.BaseExpression]
) -> list[cst.BaseExpression]:
    """The sizes, but none where the same number stands in the loop with another meaning."""
    if sizes and isinstance(sizes[0], cst.Integer):
        same = [one for one in source.nodes(cst.Integer, within=body) if one.value == sizes[0].value]
        return sizes if len(same) == len(sizes) else []
    return sizes


def _passed_on(source: Source, loop: Loop, body: cst.CSTNode | None) -> list[cst.BaseExpression]:
    """What stands behind ``at`` in calls like ``rows(at, at + size)``, of a function of this file that slices
    the first dimension from the one to the other."""
    at, found = source.code(loop.target), []
    for call in source.nodes(cst.Call, within=body):
        given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        functions = source.functions(called_name(call))
        for position, (first, second) in enumerate(pairwise(given)):
            if source.code(first) == at and any(_cuts(source, one, position) for one in functions):
                found.append(second)
    return found


def _cuts(source: Source, function: cst.FunctionDef, position: int) -> bool:
    """Whether a function slices the first dimension of something from one of its arguments to the next."""
    names = parameters(function)
    return any(
        part.lower is not None
        and part.upper is not None
        and [source.code(part.lower), source.code(part.upper)] == names[position : position + 2]
        and is_first(source, part)
        for part in source.nodes(cst.Slice, within=function)
    )
