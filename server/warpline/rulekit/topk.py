"""The edit that selects the first few entries of a sort, in place of sorting all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph
from warpline.rulekit.graph.sorts import PartlyRead
from warpline.rulekit.terms import descend, names_in
from warpline.syntax.edits import Edits, Refused, free_name
from warpline.syntax.source import NOT_LITERAL, Source, called_name, is_whole, only_target, receiver
from warpline.text.lines import lines_of

_SORTS = ("sort", "argsort", "msort")
#: What may be around what a statement computes first.
_BEGIN = (cst.SimpleStatementLine, cst.Assign, cst.Return, cst.Attribute, cst.Subscript, cst.Call)


@dataclass(frozen=True, slots=True)
class _Slice:
    """A read of the first ``count`` entries (as code). ``node`` is all of it; ``whole``: from the first one;
    ``fails``: it raises, too, where there are fewer entries."""

    node: cst.BaseExpression
    count: cst.BaseExpression
    plus: int
    whole: bool
    fails: bool


def first_few(context: Context, graph: Graph, found: PartlyRead) -> Fix:
    """``topk`` in place of a sort. Raises Refused where the number of entries is not known at the sort, or
    something else may read the rest."""
    by_hand = (
        f"call `torch.topk` for as many entries as are read, with the same `dim`"
        f"{'' if found.largest else ' and `largest=False`'}"
    )
    place = graph.place(found.node)
    source = context.source(place[0] if place is not None else "")
    calls = [one for one in source.calls(place[1] if place else 0) if called_name(one) in _SORTS]
    if len(calls) != 1 or graph.dtype(found.node.inputs[0]) == "bool":
        raise Refused(by_hand)
    made = _Sort(source, calls[0], found, len(graph.shape(found.node.outputs[0])), by_hand)
    slices = made.slices(context)
    first = slices[0]
    codes = {(source.code(one.count), one.plus) for one in slices}
    if len(codes) != 1:
        raise Refused(by_hand)
    count = source.code(first.count)
    if first.plus:
        literal = source.literal(first.count)
        count = str(literal + first.plus) if isinstance(literal, int) else f"{count} + {first.plus}"
    edits = Edits(source)
    if made.passed is not None:
        count = made.as_argument(edits, count)
    new = made.written(edits, count, fails=all(one.fails for one in slices))
    if made.around is not None and first.whole:
        edits.replace(first.node, new + source.slice(source.span(made.call)[1], source.span(made.around)[1]))
    else:
        edits.replace(made.call, new)
    used = {value for value in found.node.outputs if graph.consumers.get(value)}
    values = called_name(made.call) != "argsort" and used <= {found.node.outputs[0]}
    safe = values and found.node.index in graph.flow.ungraphed
    return edits.fix("Select the entries that are read", "safe" if safe else "unsafe")


class _Sort:
    def __init__(self, source: Source, call: cst.Call, found: PartlyRead, rank: int, by_hand: str) -> None:
        self.source, self.call, self.rank, self.found, self.by_hand = source, call, rank, found, by_hand
        self.around: cst.BaseExpression | None = None  # with `.values`, `[0]`: what is sliced at once
        #: The function that sorts and its only call, where only the caller knows the number.
        self.passed: tuple[cst.FunctionDef, cst.Call] | None = None
        self.function = source.name(call.func).startswith("torch.")
        whole = source.argument(call, "input", 0) if self.function else None
        tensor = whole.value if whole is not None else None if self.function else receiver(call)
        dim, order = (
            source.argument(call, name, at + self.function) for at, name in enumerate(("dim", "descending"))
        )
        known = [one for one in (whole, dim, order) if one is not None]
        if tensor is None or len(known) != len(call.args):
            raise Refused(by_hand)
        self.tensor: cst.BaseExpression = tensor
        usual = "0" if called_name(call) == "msort" else "-1"
        self.dim = source.code(dim.value) if dim is not None else usual
        number = source.literal(dim.value) if dim is not None else int(usual)
        descending = order is not None and source.literal(order.value)
        if type(number) is not int or number % rank != found.dim or descending is not found.largest:
            raise Refused(by_hand)

    def written(self, edits: Edits, count: str, *, fails: bool) -> str:
        """The call of ``topk``. A slice may ask for more entries than there are: ``topk`` may not."""
        code = self.source.code(self.tensor)
        name_end = self.source.span(self.call.func)[1]
        name_start = (name_end[0], name_end[1] - len(called_name(self.call)))
        before = self.source.slice(self.source.span(self.call)[0], name_start)
        if not fails:
            if isinstance(self.tensor, cst.BinaryOperation) or not _path(self.tensor):
                code = self._named(edits)
                before = before if self.function else f"{code}."
            count = f"min({count}, {code}.shape[{self.dim}])"
        rest = (f", dim={self.dim}" if self.dim != "-1" else "") + (
            "" if self.found.largest else ", largest=False"
        )
        given = f"{code}, " if self.function else ""
        new = f"{before}topk({given}{count}{rest})"
        return new + {"argsort": ".indices", "msort": ".values"}.get(called_name(self.call), "")

    def _named(self, edits: Edits) -> str:
        """Computes the tensor in a statement of its own, where it is what the sort's statement begins with.
        Returns the name that it has there."""
        source, code = self.source, self.source.code(self.tensor)
        statement = source.statement(self.call)
        above = [one for one in source.ancestors(self.call) if statement and source.inside(one, statement)]
        alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
        if statement is None or not alone or not all(isinstance(one, _BEGIN) for one in above):
            raise Refused(self.by_hand)
        if len(lines_of(code)) > 1:
            raise Refused(self.by_hand)
        name = free_name(source, "values", "unsorted", "ranked")
        edits.insert_before(statement, f"{name} = {code}")
        return name

    # -- what reads it --------------------------------------------------------------------------

    def slices(self, context: Context) -> list[_Slice]:
        """All reads of the sort's results. Raises Refused where one is something else than a slice."""
        node = self._result(self.call)
        self.around = node if self._slice(node) is not None else None
        return self._reads(context, self.call)

    def _reads(self, context: Context, call: cst.Call) -> list[_Slice]:
        """All reads of what ``call`` gives: the sort, or a function that returns its results."""
        source, node = self.source, self._result(call)
        here = self._slice(node)
        if here is not None:
            return [here]
        above = source.parent(node)
        if isinstance(above, cst.Return):
            return self._of_caller(context, above)
        target = only_target(above)
        if above is None or target is None:
            raise Refused(self.by_hand)
        names = [one.value for one in target.elements] if isinstance(target, cst.Tuple) else [target]
        function = source.enclosing(above, cst.FunctionDef)
        if function is None or not all(isinstance(name, cst.Name) for name in names):
            raise Refused(self.by_hand)
        found: list[_Slice] = []
        for name in names:
            loads = _reading(source, name, function) if isinstance(name, cst.Name) else []
            for load in loads:
                one = self._slice(self._result(load) if len(names) == 1 else load)
                back = source.parent(self._result(load) if len(names) == 1 else load)
                if one is not None and _known(source, one.count, function, above):
                    found.append(one)
                elif one is None and isinstance(back, cst.Return) and len(loads) == 1:
                    found += self._of_caller(context, back)
                else:
                    raise Refused(self.by_hand)
        if not found:
            raise Refused(self.by_hand)
        return found

    def _result(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """With ``.values``, ``.indices``, ``[0]`` or ``[1]`` of the pair that ``sort`` gives."""
        above = self.source.parent(node)
        if called_name(self.call) != "sort":
            return node
        if (
            isinstance(above, cst.Attribute)
            and above.value is node
            and above.attr.value in ("values", "indices")
        ):
            return above
        if isinstance(above, cst.Subscript) and above.value is node and len(above.slice) == 1:
            index = above.slice[0].slice
            if isinstance(index, cst.Index) and self.source.literal(index.value) in (0, 1):
                return above
        return node

    def _slice(self, node: cst.CSTNode) -> _Slice | None:
        """What reads the first entries of ``node``, where that is all that reads it."""
        source, above = self.source, self.source.parent(node)
        if isinstance(above, cst.Attribute) and above.attr.value == "narrow":
            call = source.parent(above)
            given = call.args if isinstance(call, cst.Call) else ()
            if isinstance(call, cst.Call) and len(given) == 3 and not any(arg.keyword for arg in given):
                dim, start, length = (arg.value for arg in given)
                number = source.literal(dim)
                along = isinstance(number, int) and number % self.rank == self.found.dim
                if along and source.literal(start) == 0:
                    return _Slice(call, length, 0, whole=True, fails=True) if _path(length) else None
        if not isinstance(above, cst.Subscript) or above.value is not node:
            return None
        parts = [one.slice for one in above.slice]
        dots = [isinstance(one, cst.Index) and isinstance(one.value, cst.Ellipsis) for one in parts]
        if sum(dots) > 1:
            return None
        at = dots.index(True) if any(dots) else len(parts)
        dims = [*range(at), -1, *range(self.rank - (len(parts) - at - 1), self.rank)][: len(parts)]
        found = None
        for part, dim in zip(parts, dims, strict=True):
            if dim == self.found.dim:
                found = part
            elif dim != -1 and not is_whole(part):
                return None
        if isinstance(found, cst.Index):
            number = source.literal(found.value)
            plain = type(number) is int and number >= 0
            return _Slice(above, found.value, 1, whole=False, fails=True) if plain else None
        if not isinstance(found, cst.Slice) or found.step is not None or found.upper is None:
            return None
        lower = source.literal(found.lower) if found.lower is not None else 0
        upper = source.literal(found.upper)
        if not isinstance(lower, int) or lower < 0 or not _path(found.upper):
            return None
        if upper is not NOT_LITERAL and not (type(upper) is int and upper > 0):
            return None
        return _Slice(above, found.upper, 0, whole=found.lower is None, fails=False)

    def _of_caller(self, context: Context, back: cst.Return) -> list[_Slice]:
        """The reads of what the function returns, by its only caller in the same file. Where a number is not
        one that both know, as that of an attribute of the same object, it is to be passed."""
        source, call = self.source, None
        function = source.enclosing(back, cst.FunctionDef)
        if function is None or function.decorators or len(source.nodes(cst.Return, within=function)) != 1:
            raise Refused(self.by_hand)
        for other in context.sources():
            for one in other.nodes(cst.Name):
                if one.value == function.name.value and one is not function.name:
                    attribute = other.parent(one)
                    above = other.parent(attribute) if isinstance(attribute, cst.Attribute) else attribute
                    if call is not None or other is not source or not isinstance(above, cst.Call):
                        raise Refused(self.by_hand)
                    call = above
        if call is None or called_name(call) != function.name.value:
            raise Refused(self.by_hand)
        found = self._reads(context, call)
        owner = source.enclosing(function, cst.ClassDef)
        own = owner is not None and source.enclosing(call, cst.ClassDef) is owner
        shared = {"self"} if own and source.code(call.func) == f"self.{function.name.value}" else set[str]()
        names = {one for each in found for one in _values(source, each.count)}
        if names <= shared:
            return found
        params = function.params
        plain = not (params.kwonly_params or params.star_kwarg or params.posonly_params)
        if self.passed is not None or not plain or not isinstance(params.star_arg, cst.MaybeSentinel):
            raise Refused(self.by_hand)
        if not params.params or params.params[-1].default is not None or any(arg.star for arg in call.args):
            raise Refused(self.by_hand)
        self.passed = function, call
        return found

    def as_argument(self, edits: Edits, count: str) -> str:
        """Passes the number to the function that sorts. Returns the name that it has there."""
        function, call = self.passed or (None, None)
        name = free_name(self.source, "count", "number", "entries")
        if function is None or call is None:
            raise Refused(self.by_hand)
        last = function.params.params[-1]
        edits.replace(last, f"{self.source.code(last)}, {name}")
        edits.set_argument(call, name, count)
        return name


def _reading(source: Source, name: cst.Name, function: cst.FunctionDef) -> list[cst.Name]:
    """The uses that may read what ``name`` gets there: those after it, up to where the same block gives the
    name another value."""
    statement = source.statement(name)
    uses = [one for one in source.uses(name.value, function) if one is not name]
    if statement is None or source.loops(name) or any(source.scope(one) is not function for one in uses):
        return uses
    end, block = source.span(statement)[1], source.block(statement)
    later = [one for one in uses if source.span(one)[0] >= end]
    for other in block[block.index(statement) + 1 :]:
        alone = isinstance(other, cst.SimpleStatementLine)
        targets = source.nodes(cst.AssignTarget, within=other) if alone else []
        given = {one for one in later if source.binds(one) and any(source.inside(one, at) for at in targets)}
        if given:
            end = source.span(other)[1]
            return [one for one in later if one not in given and source.span(one)[0] < end]
    return later


def _values(source: Source, node: cst.CSTNode) -> set[str]:
    names: Iterator[cst.Name] = descend(node, cst.Name)
    return {one.value for one in names if source.is_value(one)}


def _path(node: cst.CSTNode) -> bool:
    """Names, attributes, numbers and sums of these: nothing is called."""
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply)) and all(
            map(_path, (node.left, node.right))
        )
    if isinstance(node, cst.Attribute):
        return _path(node.value)
    return isinstance(node, (cst.Name, cst.Integer))


def _known(source: Source, count: cst.CSTNode, function: cst.FunctionDef, sort: cst.CSTNode) -> bool:
    """Whether a number that is read after the sort was the same before it."""
    wanted = names_in(count)
    for node in source.nodes(cst.Name, within=function):
        if node.value not in wanted or not _stored(source, node):
            continue
        statement = source.statement(node)
        before = source.line(node) < source.line(sort)
        beside = statement is not None and statement in source.block(sort)
        if not (before and beside) or source.loops(sort):
            return False
    return True


def _stored(source: Source, name: cst.Name) -> bool:
    """Whether the name, or the attribute of it, is given a value there."""
    node: cst.Name | cst.Attribute = name
    while isinstance(above := source.parent(node), cst.Attribute):
        node = above
    return source.binds(node) and not isinstance(source.parent(node), cst.Param)
