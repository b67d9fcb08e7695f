"""The line that fills rows up to a fixed length, in a collate function, a dataset or the step."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from warpline.rulekit.calling import function_of, is_forward
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import MOVED, Graph
from warpline.rulekit.origins import origin, passing
from warpline.rulekit.terms import function_at
from warpline.rulekit.visiting import order_of_part
from warpline.syntax.source import NOT_LITERAL, Source, called_name, only_target
from warpline.wire.dataflow import Padding
from warpline.wire.sites import Loader, facts_of

_FILLS = ("zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "new_empty")
#: Calls that put batches into one tensor, or one dataset.
_JOINS = ("stack", "cat", "concat", "concatenate", "vstack", "hstack", "TensorDataset")
#: Products of rows with a weight, whose last dimension is that of the weight.
_LAYERS = frozenset({"mm", "addmm", "linear", "matmul"})
#: Calls that put rows in an order.
_SHUFFLES = ("permutation", "randperm", "shuffle", "argsort")

_Place = tuple[str | None, int | None]


def hides_classes(graph: Graph, found: Padding) -> bool:
    """Whether a mask hides entries of what a layer computes, such as scores of classes: they are no
    positions of a batch."""
    waiting = {
        value
        for node in graph.consumers.get(found.value, ())
        for value in node.inputs
        if value != found.value and found.mask
    }
    seen = set[int]()
    while waiting:
        value = waiting.pop()
        seen.add(value)
        node = graph.producer.get(value)
        if node is None or graph.shape(value)[-1:] != (found.columns,):
            continue
        if node.name in _LAYERS:
            weights = [graph.origin(one, MOVED) for one in node.inputs[:3]]
            if any(one in graph.parameters or one not in graph.producer for one in weights):
                return True
        else:
            waiting |= {one for one in node.inputs if graph.size(one) == graph.size(value)} - seen
    return False


def filled_at(context: Context, columns: int) -> tuple[str, int] | None:
    """The line that makes rows of ``columns`` entries, whatever their own length: the first one of the
    function that has such lines. None where no function or more than one does. Looked at are the loaders that
    a step uses, and where these have none the functions that the step itself calls."""
    used = [facts_of(Loader, site) for site in context.sites("loader") if site.uses]
    functions = {(one.collate_file, one.collate_line) for one in used}
    functions |= {(one.dataset_file, one.dataset_line) for one in used}
    found = _filling(context, functions, columns)
    if not found:
        found = _filling(context, _called_by(context, functions), columns)
    if not found:
        ran = {cost.place for cost in context.profile.lines if not is_forward(function_of(cost))}
        found = _filling(context, ran, columns)
    return min(found) if len(found) == 1 else None


def _called_by(context: Context, places: Collection[_Place]) -> set[_Place]:
    """The functions of the same file that those at ``places`` call by name, also as methods of an object."""
    found = set[_Place]()
    for source, function in functions_at(context, places):
        for name in {called_name(call) for call in source.nodes(cst.Call, within=function)}:
            found |= {source.place(one) for one in source.functions(name)}
    return found


def functions_at(context: Context, places: Collection[_Place]) -> Iterator[tuple[Source, cst.FunctionDef]]:
    """The functions of the script that are at ``places``, or contain them."""
    for file, line in places:
        source = context.source(file if file is not None and file in context.profile.sources else "")
        function = function_at(source, line) if line else None
        if function is not None:
            yield source, function


def filled_before(context: Context, columns: int) -> set[tuple[str, int]]:
    """The same lines of all functions, where a step gets a batch that was made before it, and nothing says
    by which. Empty where something may have joined batches, which have to be equally wide then."""
    joins = (
        (source, call) for source, call in context.calls(*_JOINS) if not context.cost(*source.place(call))
    )
    if any(context.reached.node(source, call) is not False for source, call in joins):
        return set()
    functions = [one.place(each) for one in context.sources() for each in one.nodes(cst.FunctionDef)]
    return _filling(context, functions, columns)


def filled_up_before(context: Context, columns: int) -> tuple[str, int] | None:
    """The first line that fills rows up before the steps: ``row + [0] * (width - len(row))``, one that stores
    rows in a tensor of ``columns``, ``filled[i, : len(row)] = row``, or calls of a function that pads by its
    name. None where several functions do."""
    found: dict[tuple[str, cst.CSTNode | None], list[tuple[str, int]]] = {}
    for source in context.sources():
        for one in source.nodes(cst.BinaryOperation):
            place = source.place(one)
            before = context.cost(*place) is None and context.reached.node(source, one) is not False
            if before and _is_missing(source, one) and _fills(source, one):
                function = source.enclosing(one, cst.FunctionDef)
                found.setdefault((source.path, function), []).append(place)
    if found:
        return min(next(iter(found.values()))) if len(found) == 1 else None
    stored = _filling(context, _storing_before(context), columns)
    if stored:
        return stored.pop() if len(stored) == 1 else None
    calls = dict(_padding_calls(context, columns))
    return min(calls) if len(set(calls.values())) == 1 else None


def _padding_calls(context: Context, columns: int) -> Iterator[tuple[tuple[str, int], str]]:
    """Calls before the steps that pad to ``columns`` by their name, as Keras' ``pad_sequences``, or all rows
    to the longest of them, as torch's ``pad_sequence``: where they are, and that name."""
    for source, call in context.calls():
        name, ran = called_name(call), context.reached.node(source, call) is not False
        if "pad" not in name or not ran or context.cost(*source.place(call)):
            continue
        given = (origin(context, source, arg.value) for arg in call.args)
        if name == "pad_sequence" or any(
            one.editable and one.source.literal(one.node) == columns for one in given
        ):
            yield source.place(call), name


def _storing_before(context: Context) -> set[_Place]:
    """Functions that ran before the steps, and store rows in a part of something that is as long as they."""
    return {
        source.place(function)
        for source in context.sources()
        for function in source.nodes(cst.FunctionDef)
        if context.reached.node(source, function) is not False
        if not context.costs_of(source, function)
        for target in source.nodes(cst.AssignTarget, within=function)
        if isinstance(target.target, cst.Subscript)
        if any("len(" in source.code(part) for part in source.nodes(cst.Slice, within=target))
    }


def _fills(source: Source, number: cst.BaseExpression) -> bool:
    """Whether a list is repeated so often, or a call fills so many entries. A name may stand for that."""
    above = source.parent(number)
    name = only_target(above)
    if isinstance(name, cst.Name):
        return any(_fills(source, one) for one in source.reads(name.value, source.scope(number)))
    if isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Multiply):
        return any(isinstance(side, cst.List) for side in (above.left, above.right))
    call = source.enclosing(number, cst.Call)
    return call is not None and source.is_named(call.func, "pad", *_FILLS)


def loaded_at(context: Context) -> tuple[str, int] | None:
    """The line that decides how much padding the batches of the only loader that a step uses have, where rows
    are padded to the longest of their batch: the order that a sampler of the script's own takes them in, or
    where they are filled up. None where neither is found."""
    used = [site for site in context.sites("loader") if site.uses]
    if len(used) != 1:
        return None
    given = {one.name: one.value for one in used[0].arguments if one.passed}
    for name in ("batch_sampler", "sampler"):
        ordered = _orders(context, str(given.get(name)))
        if len(ordered) == 1:
            return ordered.pop()
    loader = facts_of(Loader, used[0])
    file, line = loader.collate_file, loader.collate_line
    source = context.source(file if file is not None and file in context.profile.sources else "")
    function = source.statement_at(line) if line else None
    if not isinstance(function, cst.FunctionDef):
        return None
    filled = [
        source.line(call)
        for call in source.nodes(cst.Call, within=function)
        if source.is_named(call.func, "pad_sequence")
        or (source.is_named(call.func, *_FILLS) and len([arg for arg in call.args if not arg.keyword]) > 1)
    ]
    return (source.path, min(filled)) if filled else None


def padded_at(context: Context, graph: Graph, found: Padding) -> tuple[str, int] | None:
    """The line that decides how much padding batches have which the script's own code pads to their longest
    row, with no loader: the order that it takes the rows in, or ``pad_sequence``. A step may compute with a
    batch from before it, and pad the next one. None where several functions pad, or something else made the
    batch."""
    made = graph.producer.get(graph.origin(found.value, MOVED))
    if found.mask or any(site.uses for site in context.sites("loader")):
        return None
    calls = {}
    for node in graph.nodes if made is None else (made,):
        place = graph.place(node)
        if place is None or not any(found.rows in graph.shape(value)[:2] for value in node.outputs):
            continue
        source = context.source(place[0])
        for call in source.calls(place[1], "pad_sequence"):
            calls[place[0], source.line(call)] = source, call
    functions = {(source.path, source.enclosing(call, cst.FunctionDef)) for source, call in calls.values()}
    if len(functions) != 1:
        return None
    # Tokens and targets are padded side by side in one function: the first line stands for all.
    first = min(calls)
    source, call = calls[first]
    rows = call.args[0].value if call.args else None
    order = order_of_part(context, source, rows.for_in.iter) if isinstance(rows, cst.ListComp) else None
    return order or first


def _orders(context: Context, kind: str) -> set[tuple[str, int]]:
    """Where the methods of the script's class ``kind`` make an order of rows."""
    return {
        source.place(call)
        for source, made in context.classes(kind)
        for call in source.nodes(cst.Call, within=made)
        if source.is_named(call.func, *_SHUFFLES)
    }


def _filling(context: Context, places: Collection[_Place], columns: int) -> set[tuple[str, int]]:
    """The first line that pads rows, in each function that is at one of ``places`` or contains it. Where one
    function tells it the width, the first of these calls: a helper pads to what it is told."""
    found = set()
    for source, function in functions_at(context, places):
        sizes = [
            (size, read)
            for size, read in _sizes(source, function)
            if _is_fixed_there(
                context, source, source.enclosing(size, cst.FunctionDef) or function, size, columns
            )
        ]
        # Tokens and targets are filled side by side in one function: the first line stands for all.
        if sizes:
            first, read = min(sizes, key=lambda one: source.line(one[0]))
            around = source.enclosing(first, cst.FunctionDef) or function
            calls = telling(context, source, around, source.code(first))
            where = read if _is_read_besides(source, function, read) else first
            other, _, given = calls[0] if calls else (source, None, where)
            found.add(other.place(given))
    return found


def _is_read_besides(source: Source, function: cst.FunctionDef, size: cst.BaseExpression) -> bool:
    """Whether a name is also read for something else than to fill rows: to cut longer ones, say."""
    reads = source.reads(size.value, function) if isinstance(size, cst.Name) else []
    fills = {read for _, read in _sizes(source, function)}
    return any(read not in fills for read in reads)


def _is_fixed_there(
    context: Context, source: Source, function: cst.FunctionDef, size: cst.BaseExpression, columns: int
) -> bool:
    """Whether ``size``, or what the only caller tells a function that has it from there, does not depend on
    the rows."""
    if is_fixed(context, source, function, size, columns):
        return True
    told = telling(context, source, function, source.code(size))
    callers = [one.enclosing(call, cst.FunctionDef) for one, call, _ in told]
    return bool(told) and all(
        caller is not None and is_fixed(context, one, caller, arg.value, columns)
        for caller, (one, _, arg) in zip(callers, told, strict=True)
    )


def telling(
    context: Context, source: Source, function: cst.FunctionDef, name: str
) -> list[tuple[Source, cst.Call, cst.Arg]]:
    """The calls that pass a parameter of ``function``, if they are in one function and pass the same."""
    calls = passing(context, source, function, name)
    told = {(one.enclosing(call, cst.FunctionDef), one.code(arg.value)) for one, call, arg in calls}
    return calls if len(told) == 1 else []


def _sizes(
    source: Source, function: cst.FunctionDef
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Last sizes of the tensors that ``function`` fills, and ``limit`` of ``limit - len(row)``: where a name
    stands for one, what it is given there. The second is what stands in the call or the difference."""
    for call in source.nodes(cst.Call, within=function):
        if sizes := sizes_of(source, call):
            size = assigned(source, function, sizes[-1])
            either = isinstance(size, cst.BooleanOperation) and isinstance(size.operator, cst.Or)
            # `self.width or max(…)`: a width that is given counts.
            size = size.left if either and isinstance(size, cst.BooleanOperation) else size
            yield source.returned(size) or size, sizes[-1]
    for difference in source.nodes(cst.BinaryOperation, within=function):
        if _is_missing(source, difference):
            yield assigned(source, function, difference.left), difference.left


def widths(source: Source, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """All that the last sizes of tensors that ``function`` fills, and ``limit`` of ``limit - len(row)``, may
    be: what each branch gives a name, both sides of ``a if … else b``."""
    sizes = [own[-1] for call in source.nodes(cst.Call, within=function) if (own := sizes_of(source, call))]
    differences = source.nodes(cst.BinaryOperation, within=function)
    sizes += [one.left for one in differences if _is_missing(source, one)]
    for size in sizes:
        given = source.assigned(source.code(size), within=function) if isinstance(size, cst.Name) else []
        for value in given or [size]:
            yield from (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)


def _is_missing(source: Source, difference: cst.BinaryOperation) -> bool:
    """Whether it is as ``limit - len(row)``."""
    own = source.code(difference.right)
    return isinstance(difference.operator, cst.Subtract) and (
        "len(" in own or "shape" in own or "size(" in own
    )


def sizes_of(source: Source, call: cst.Call) -> list[cst.BaseExpression]:
    """The sizes of the tensor that a call fills; empty for another call."""
    if not source.is_named(call.func, *_FILLS):
        return []
    sizes = [arg.value for arg in call.args if arg.keyword is None]
    if sizes and isinstance(sizes[0], (cst.Tuple, cst.List)):
        return [element.value for element in sizes[0].elements]
    return sizes


def assigned(source: Source, function: cst.FunctionDef, size: cst.BaseExpression) -> cst.BaseExpression:
    """What the only assignment in ``function`` gives the name ``size``; ``size`` itself without one."""
    given = source.assigned(source.code(size), within=function)
    return given[0] if len(given) == 1 and isinstance(size, cst.Name) else size


def is_fixed(
    context: Context, source: Source, function: cst.FunctionDef, size: cst.BaseExpression, columns: int
) -> bool:
    """Whether ``size`` does not depend on the rows. Where its value can be read, it must be ``columns``."""
    known = origin(context, source, size)
    value = source.literal(size) if known.kind == "unknown" else known.source.literal(known.node)
    if value is not NOT_LITERAL:
        return bool(value == columns)
    base = size
    while isinstance(base, (cst.Attribute, cst.Subscript)):
        base = base.value
    return isinstance(base, cst.Name) and base.value not in _own_names(source, function)


def _own_names(source: Source, function: cst.FunctionDef) -> set[str]:
    """Parameters but for ``self``, and what ``function`` assigns or loops over."""
    params = function.params
    names = {param.name.value for param in (*params.params, *params.kwonly_params)} - {"self"}
    targets: list[cst.CSTNode] = [*source.nodes(cst.AssignTarget, within=function)]
    loops: list[cst.For | cst.CompFor] = [*source.nodes(cst.For, within=function)]
    loops += source.nodes(cst.CompFor, within=function)
    targets += [loop.target for loop in loops]
    return names | {name.value for target in targets for name in source.nodes(cst.Name, within=target)} - {
        "self"
    }
