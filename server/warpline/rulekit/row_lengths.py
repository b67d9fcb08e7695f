"""The edit that pads a batch to its own longest row, where a function fills all batches up to one length."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph, Node
from warpline.rulekit.graph.attention import PRODUCTS
from warpline.rulekit.origins import passing
from warpline.rulekit.padding import assigned, is_fixed, sizes_of, telling
from warpline.rulekit.terms import function_at, names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, called_name, only_target, taken
from warpline.wire.dataflow import Padding

TITLE = "Pad each batch to its longest row"
BY_HAND = "pad each batch to its own longest row, and not to a fixed length"
_LONGEST = "longest"
#: Operators that take the rows that numbers name, whatever the size of the table.
_LOOKUPS = frozenset({"embedding", "index", "index_select", "gather"})
#: Where code stands that knows a word: a comparison, or a parameter's default.
_KNOWING = (cst.Comparison, cst.ComparisonTarget, cst.Param)
_CUTS = frozenset({"slice", "narrow"})
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: Operators that compare tokens with the one for padding.
COMPARED = frozenset({"eq", "ne", "gt", "lt", "ge", "le"})


@dataclass(frozen=True)
class _Rows:
    """A loop over rows, written as in a comprehension, and how long a row is; ``cut``: it may be longer than
    what is kept of it."""

    over: str
    length: str
    cut: bool

    @property
    def rows(self) -> str:
        """What the loop goes over."""
        return self.over.rpartition(" in ")[2]

    def longest(self, limit: str) -> str:
        """The code of the longest row's length, at most ``limit`` where rows are cut to it."""
        longest = f"max({self.length} {self.over})"
        return f"min({longest}, {limit})" if self.cut and limit not in self.length else longest


def to_longest_row(context: Context, graph: Graph, found: Padding, place: tuple[str, int]) -> Fix:
    """Make the tensors that the function at ``place`` fills as wide as their longest row. Raises Refused
    where it does not put rows at the beginning of them, something else counts on the length, or nothing is
    seen that leaves padding out of what is computed."""
    source = context.source(place[0])
    function = function_at(source, place[1])
    if function is None or not hides_padding(context, graph, found):
        raise Refused(BY_HAND)
    told = _told(context, source, place[1], found.columns)
    if told is not None:
        return _in_calls(context, graph, found, told)
    if is_counted_on(context, graph, function, found):
        raise Refused(BY_HAND)
    sizes = list(_widths(context, source, function, found.columns))
    if not sizes or len({source.code(one) for one in sizes}) != 1:
        raise Refused(BY_HAND)
    written = source.code(sizes[0])
    given = source.assigned(written, within=function) if isinstance(sizes[0], cst.Name) else []
    if len(given) > 1:
        raise Refused(BY_HAND)
    limit = source.code(given[0]) if given else written
    row = _only_row([row for size in sizes for row in _rows(source, function, size)], written, limit)
    edits = Edits(source)
    used = [one for one in map(source.statement, given or sizes) if one is not None]
    taken = source.uses("longest", function)
    made = source.assigned(row.rows, within=function)
    if not used or (taken and not given) or any(source.line(one) >= source.line(used[0]) for one in made):
        raise Refused(BY_HAND)
    if given:
        edits.replace(given[0], row.longest(limit))
    else:
        edits.insert_before(used[0], f"longest = {row.longest(limit)}")
        for size in sizes:
            edits.replace(size, "longest")
    return edits.fix(TITLE, "unsafe")


@dataclass(frozen=True)
class _Told:
    """A function that fills rows up to ``sizes``, and the calls in ``caller`` that tell it their width."""

    source: Source
    function: cst.FunctionDef
    sizes: list[cst.BaseExpression]
    caller: Source
    calls: list[cst.Call]
    widths: list[cst.BaseExpression]


def _told(context: Context, source: Source, line: int, columns: int) -> _Told | None:
    """The function that a call on the line gives the width that it fills rows up to."""
    for call in source.calls(line):
        for other in context.sources():
            for function in other.functions(called_name(call)):
                sizes = list(_widths(context, other, function, columns))
                names = {other.code(one) for one in sizes}
                given = telling(context, other, function, names.pop()) if len(names) == 1 else []
                calls = [one for _, one, _ in given]
                if call in calls:
                    return _Told(other, function, sizes, source, calls, [arg.value for *_, arg in given])
    return None


def _in_calls(context: Context, graph: Graph, found: Padding, told: _Told) -> Fix:
    """Pass the longest row's length, that of all calls. Raises Refused where one has not its rows under a
    name."""
    source, function, caller = told.source, told.function, told.caller
    width, limit = source.code(told.sizes[0]), caller.code(told.widths[0])
    row = _only_row([row for size in told.sizes for row in _rows(source, function, size)], width, limit)
    given = [arg.value for _, call, arg in passing(context, source, function, row.rows) if call in told.calls]
    target = row.over.removeprefix("for ").rpartition(" in ")[0]
    known = {*_NAME.findall(target), *_NAME.findall(limit), "len", "min"}
    if (
        len(given) != len(told.calls)
        or not all(isinstance(one, (cst.Name, cst.Attribute)) for one in given)
        or source.assigned(row.rows, within=function)
        or not known.issuperset(_NAME.findall(row.length))
        or is_counted_on(context, graph, function, found)
    ):
        raise Refused(BY_HAND)
    names = list(dict.fromkeys(caller.code(one) for one in given))
    rows = names[0] if len(names) == 1 else f"({', '.join(f'*{one}' for one in names)})"
    longest = replace(row, over=f"for {target} in {rows}").longest(limit)
    edits = Edits(caller)
    if len(told.calls) > 1:
        edits.insert_before(_before(caller, told.calls, names), f"longest = {longest}")
        longest = "longest"
    for one in told.widths:
        edits.replace(one, longest)
    return edits.fix(TITLE, "unsafe")


def _before(source: Source, calls: list[cst.Call], names: list[str]) -> Statement:
    """The statement of the first call, where the rows of all have their ``names``. Raises Refused."""
    statements = [source.statement(call) for call in calls]
    first, block = statements[0], source.block(calls[0])
    within = source.scope(calls[0])
    bound = [one for name in names for one in source.bindings(name, within)]
    if (
        first is None
        or any(one not in block for one in statements)
        or "longest" in names_in(within)
        or any(source.line(one) >= source.line(first) for one in bound)
    ):
        raise Refused(BY_HAND)
    return first


def _only_row(rows: list[_Rows], written: str, limit: str) -> _Rows:
    """What all of ``rows`` say, with ``limit`` for the name ``written`` of it. Raises Refused where they do
    not say the same."""
    lengths = {row.length.replace(written, limit) if limit != written else row.length for row in rows}
    lengths = {one for one in lengths if not any(one.startswith(f"{other} - ") for other in lengths)}
    if len({row.over for row in rows}) != 1 or len(lengths) != 1:
        raise Refused(BY_HAND)
    return _Rows(rows[0].over, lengths.pop(), all(row.cut for row in rows))


def by_word(
    context: Context, graph: Graph, found: Padding, source: Source, call: cst.Call, word: cst.BaseExpression
) -> Fix:
    """``padding="max_length"`` -> ``padding="longest"``, where the call gets a batch at once: it runs once a
    step, or the user's own code knows the other word. Raises Refused as ``to_longest_row`` does."""
    cost = context.cost(*source.place(call))
    own = any(
        each.literal(one) == _LONGEST and isinstance(each.parent(one), _KNOWING)
        for each in context.sources()
        for one in each.nodes(cst.SimpleString)
    )
    if not own and (cost is None or round(cost.calls) > 1):
        raise Refused(BY_HAND)
    maker = next((owner for _, owner in context.classes(called_name(call))), call)
    if not hides_padding(context, graph, found) or is_counted_on(context, graph, maker, found):
        raise Refused(BY_HAND)
    edits = Edits(source).replace(word, f'"{_LONGEST}"')
    return edits.fix(TITLE, "unsafe")


def hides_padding(context: Context, graph: Graph, found: Padding) -> bool:
    """Whether something is seen that leaves padding out of what is computed, and nothing is compiled."""
    return _is_masked(graph, found) and not is_compiled(context)


def is_compiled(context: Context) -> bool:
    """Whether some code is compiled or captured: each other length of rows is compiled for itself."""
    facts = context.profile.facts
    return bool(facts.compile_events or facts.compiled_kernels or facts.captured_graphs)


def _is_masked(graph: Graph, found: Padding) -> bool:
    """Whether a mask of the batch is seen: one of the same columns, or tokens are compared with a number."""
    masks = (one for one in graph.flow.padding if one.mask and one.columns == found.columns)
    return any(masks) or any(node.name in COMPARED for node, _ in graph.uses(graph.origin(found.value)))


def is_counted_on(context: Context, graph: Graph, maker: cst.CSTNode, found: Padding) -> bool:
    """Whether anything in the step but ``maker``, a function or a statement, may need rows of so many
    entries: an operator that reads all of a parameter or a buffer of that size, or a line that has the number
    as a size."""
    columns = found.columns
    fixed = {*graph.parameters, *graph.flow.buffers}
    # A slice of all rows of a table is the table itself in the record.
    cut = {(graph.place(one), value) for one in graph.nodes if one.name in _CUTS for value in one.inputs}
    for node in graph.nodes:
        place, inputs = graph.place(node), node.inputs
        if inputs and fixed.issuperset(inputs):
            fixed.update(node.outputs)
        elif node.name not in _LOOKUPS and not (
            inputs[:1] and graph.is_in_place(node) and inputs[0] in fixed
        ):
            whole = [one for one in inputs if one in fixed and (place, one) not in cut]
            table = any(columns in graph.shape(one) for one in whole)
            if table and not (_is_layer(graph, node, fixed, found) or _is_cut(context, place, columns)):
                return True
        numbers = [n for one in node.arguments for n in (one if isinstance(one, (list, tuple)) else [one])]
        if place is None or not any(type(n) is int and n == columns for n in numbers):
            continue
        source = context.source(place[0])
        here = source.statement_at(place[1])
        if here is None or source.inside(here, maker) or source.inside(maker, here):
            continue  # makes the batch
        around = source.enclosing(here, cst.FunctionDef)
        given = (arg.value for call in source.calls(place[1]) for arg in call.args)
        sizes = [one for arg in given for one in _each(arg) if not isinstance(one, cst.Call)]
        sizes += [one.upper for one in source.nodes(cst.Slice, within=here) if one.upper is not None]
        if around is None or any(is_fixed(context, source, around, size, columns) for size in sizes):
            return True
    return False


def _is_cut(context: Context, place: tuple[str, int] | None, columns: int) -> bool:
    """Whether the line, or what gives its names their values, slices up to a size that the rows give: torch
    makes no operator of ``table[:, :size]`` that takes all of it."""
    source, line = (context.source(place[0]), place[1]) if place is not None else (context.source(""), 0)
    here, function = source.statement_at(line), function_at(source, line)
    if here is None or function is None:
        return False
    parts = [here, *(value for name in names_in(here) for value in source.assigned(name, within=function))]
    ends = [one.upper for part in parts for one in source.nodes(cst.Slice, within=part)]
    sizes = [one for one in ends if one is not None]
    return bool(sizes) and not any(is_fixed(context, source, function, one, columns) for one in sizes)


def _is_layer(graph: Graph, node: Node, fixed: set[int], found: Padding) -> bool:
    """Whether it is a product of a weight with what each position has, and not with all positions; or has a
    weight for each of the features, as a norm."""
    sizes = [graph.shape(one)[:-1] for one in node.inputs if one not in fixed]
    products = PRODUCTS | {"addmm", "linear"}
    features = all(len(graph.shape(one)) <= 1 for one in node.inputs if one in fixed)
    each = bool(sizes) and all(math.prod(one) == found.rows * found.columns for one in sizes)
    return each and (features or node.name in products)


def _each(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(value, (cst.Tuple, cst.List)):
        yield from (one.value for one in value.elements)
    else:
        yield value


def _widths(
    context: Context, source: Source, function: cst.FunctionDef, columns: int
) -> Iterator[cst.BaseExpression]:
    """The fixed widths of the tensors of rows that the function fills, and ``width`` of each
    ``width - len(row)``. Raises Refused for one of a single row, which others have to match."""
    for call in source.nodes(cst.Call, within=function):
        sizes = sizes_of(source, call)
        if sizes and is_fixed(context, source, function, assigned(source, function, sizes[-1]), columns):
            if len(sizes) != 2:
                raise Refused(BY_HAND)
            if not source.name(sizes[-1]).startswith(("numpy.", "torch.")):  # a type
                yield sizes[-1]
    for one in source.nodes(cst.BinaryOperation, within=function):
        own = isinstance(one.right, cst.Call) and called_name(one.right) == "len"
        width = assigned(source, function, one.left)
        less = own and isinstance(one.operator, cst.Subtract)
        if less and is_fixed(context, source, function, width, columns):
            yield one.left


def _rows(source: Source, function: cst.FunctionDef, size: cst.BaseExpression) -> Iterator[_Rows]:
    """The rows that are put into what has this width. Raises Refused."""
    above = source.parent(size)
    if isinstance(above, cst.BinaryOperation):  # `row + [0] * (width - len(row))`
        around = source.enclosing(above, cst.ListComp)
        if around is None or around.for_in.ifs or around.for_in.inner_for_in is not None:
            raise Refused(BY_HAND)
        length = source.code(above.right)
        yield _Rows(_over(source, function, around.for_in, ""), length, cut=False)
        return
    assign = source.enclosing(size, cst.Assign)
    target = only_target(assign)
    filled = target.value if isinstance(target, cst.Name) else ""
    stores = [
        (one, target)
        for one in source.nodes(cst.Assign, within=function)
        for target in (part.target for part in one.targets)
        if isinstance(target, cst.Subscript) and _is_row_of(source, target, filled)
    ]
    if not stores:
        raise Refused(BY_HAND)
    for one, part in stores:
        yield _stored(source, function, one, part, filled)


def _is_row_of(source: Source, part: cst.Subscript, filled: str) -> bool:
    """Whether it is a part of the tensor ``filled``, or of its row in a loop over ``zip(filled, rows)``."""
    base: cst.BaseExpression = part
    while isinstance(base, cst.Subscript):
        base = base.value
    name = base.value if isinstance(base, cst.Name) else ""
    paired = any(
        isinstance(loop, cst.For)
        and source.code(loop.iter).startswith(f"zip({filled}, ")
        and isinstance(loop.target, cst.Tuple)
        and source.code(loop.target.elements[0].value) == name
        for loop in source.loops(part)
    )
    return bool(filled) and (name == filled or paired)


def _stored(
    source: Source, function: cst.FunctionDef, store: cst.Assign, part: cst.Subscript, filled: str
) -> _Rows:
    """What ``filled[i, :length] = row`` in a loop says of the rows. Raises Refused where they do not end with
    a length counted from the left."""
    loops = source.loops(store)
    cut = part.slice[-1].slice
    if len(loops) != 1 or not isinstance(loops[0], cst.For) or not isinstance(cut, cst.Slice):
        raise Refused(BY_HAND)
    upper = cut.upper
    if upper is None or cut.step is not None or isinstance(upper, (cst.UnaryOperation, cst.Integer)):
        raise Refused(BY_HAND)
    body = loops[0].body
    given = source.assigned(upper.value, within=body) if isinstance(upper, cst.Name) else []
    upper = given[0] if len(given) == 1 else upper
    bound = {one.value for one in source.nodes(cst.Name, within=body) if source.binds(one)}
    if bound & names_in(upper):
        raise Refused(BY_HAND)
    sliced = isinstance(store.value, cst.Subscript) and isinstance(store.value.slice[-1].slice, cst.Slice)
    whole = isinstance(store.value, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)) and not sliced
    return _Rows(_over(source, function, loops[0], filled), source.code(upper), cut=not whole)


def _over(source: Source, function: cst.FunctionDef, loop: cst.For | cst.CompFor, filled: str) -> str:
    """``for row in rows``, without the tensor that is filled and without numbers. Raises Refused where the
    rows may be an iterator, which can be read only once."""
    pairs = [pair for pair in taken(loop.target, loop.iter) if source.code(pair[1]) != filled]
    target, rows = pairs[0] if len(pairs) == 1 else (loop.target, loop.iter)
    written = source.code(rows)
    sized = any(
        called_name(call) == "len" and call.args and source.code(call.args[0].value) == written
        for call in source.nodes(cst.Call, within=function)
    )
    loops = [one.iter for one in source.nodes(cst.For, within=function)]
    loops += [one.iter for one in source.nodes(cst.CompFor, within=function)]
    again = sum(source.code(one) == written for one in loops) > 1
    if not isinstance(rows, (cst.Name, cst.Attribute)) or not (sized or again):
        raise Refused(BY_HAND)
    return f"for {source.code(target)} in {written}"
