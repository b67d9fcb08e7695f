"""Loops that take the largest, or smallest, of the numbers that a mask chooses in each row, as hard mining
does: ``x[i][mask[i]].max()``; and the edit that fills the others in all rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph, Node, whole_graph
from warpline.rulekit.rounds import Rounds, nodes_at
from warpline.rulekit.vectorised import put_joined
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, alone, appended, is_method, only_target, plain_lines

_BY_HAND = "fill what the mask leaves out (`masked_fill`), and take `amax` or `amin` of the rows"
_TITLE = "Work on the whole tensor at once"
_ENDS = {"max": ("-inf", "amax"), "min": ("inf", "amin")}


@dataclass(frozen=True, slots=True)
class Masked:
    """What one line of the loop adds to ``pieces``, or a comprehension gives. ``others``: whether the mask
    says what is left out; ``one``: whether the number is added as a tensor of one dimension."""

    pieces: str
    rows: str
    mask: str
    end: str
    others: bool
    one: bool

    @property
    def code(self) -> str:
        """The same of all rows."""
        fill, end = _ENDS[self.end]
        left_out = self.mask if self.others else f"~{self.mask}"
        return f'{self.rows}.masked_fill({left_out}, float("{fill}")).{end}(1)'


def masked_rows(source: Source, loop: cst.CSTNode) -> list[Masked]:
    """What the lines of ``for i in range(n)`` take, or a comprehension; [] for another loop."""
    taken: list[tuple[str, cst.BaseExpression] | None]
    if isinstance(loop, cst.For) and loop.orelse is None:
        over, number = loop.iter, loop.target
        taken = [_added(line) for line in plain_lines(loop.body) or ()]
    elif isinstance(loop, (cst.ListComp, cst.GeneratorExp)):
        over, number = loop.for_in.iter, loop.for_in.target
        taken = [None if loop.for_in.ifs or loop.for_in.inner_for_in else ("", loop.elt)]
    else:
        return []
    if not isinstance(over, cst.Call) or source.name(over.func) != "range" or len(over.args) != 1:
        return []
    name = number.value if isinstance(number, cst.Name) else ""
    found = [_masked(source, *one, name) if one is not None else None for one in taken]
    return [one for one in found if one is not None] if None not in found else []


def _added(line: cst.BaseSmallStatement) -> tuple[str, cst.BaseExpression] | None:
    """The name and the value of ``pieces.append(value)``."""
    added = appended(line)
    return (added[0].value, added[1]) if added is not None and isinstance(added[0], cst.Name) else None


def _masked(source: Source, pieces: str, value: cst.BaseExpression, number: str) -> Masked | None:
    one = bool(pieces) and is_method(value, "unsqueeze")
    if one:
        if [source.code(arg) for arg in cst.ensure_type(value, cst.Call).args] != ["0"]:
            return None
        value = cst.ensure_type(cst.ensure_type(value, cst.Call).func, cst.Attribute).value
    if not isinstance(value, cst.Call) or not is_method(value, *_ENDS) or value.args:
        return None
    func = cst.ensure_type(value.func, cst.Attribute)
    chosen = _indexed(func.value)
    rows = _row(source, chosen[0], number) if chosen is not None else None
    if chosen is None or rows is None:
        return None
    test, others = chosen[1], False
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.BitInvert):
        test, others = test.expression, True
    elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        (compared,) = test.comparisons
        if not isinstance(compared.operator, cst.Equal) or source.literal(compared.comparator) != 0:
            return None
        test, others = test.left, True
    mask = _row(source, test, number)
    return Masked(pieces, rows, mask, func.attr.value, others, one) if mask is not None else None


def _indexed(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """``x`` and ``i`` of ``x[i]``."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return (
        (node.value, index.value)
        if isinstance(node, cst.Subscript) and isinstance(index, cst.Index)
        else None
    )


def _row(source: Source, node: cst.BaseExpression, number: str) -> str | None:
    """``x`` of ``x[i]``, which is a name."""
    found = _indexed(node)
    if found is None or not isinstance(found[0], cst.Name) or source.code(found[1]) != number:
        return None
    return found[0].value


def filled_at_once(context: Context, found: Rounds, each: list[Masked]) -> Fix:
    """Fill what the masks leave out, in all rows at once. Raises Refused unless the record shows that masks
    choose in all rows of matrices, and the results are stacked below the loop."""
    source, loop = found.source, found.loop
    graph = whole_graph(context.profile.facts.dataflow)
    if graph is None or not _all_rows(graph, nodes_at(graph, source, loop), len(each)):
        raise Refused(_BY_HAND)
    edits = Edits(source)
    if not isinstance(loop, cst.For):
        assert not isinstance(loop, cst.While)
        put_joined(source, edits, loop, each[0].code)
        return edits.fix(_TITLE, "unsafe")
    names = [one.pieces for one in each]
    if len(set(names)) != len(names) or {one.rows for one in each} & set(names):
        raise Refused(_BY_HAND)
    for made in dict.fromkeys(_made(source, loop, name, names) for name in names):
        edits.remove(made)
    for one in each:
        _put_joined(source, edits, loop, one, _made(source, loop, one.pieces, names))
    edits.replace_statement(loop, "\n".join(f"{one.pieces} = {one.code}" for one in each))
    return edits.fix(_TITLE, "unsafe")


def _all_rows(graph: Graph, nodes: list[Node], lines: int) -> bool:
    """Whether each line chose, by a mask of as many numbers, in each row of a matrix of float numbers."""
    taken: dict[int, set[int]] = {}
    for node in nodes:
        if node.name == "select":
            if node.argument(1, "dim", 0) != 0 or len(graph.shape(node.inputs[0])) != 2:
                return False
            taken.setdefault(node.inputs[0], set()).add(int(node.arguments[2]))
    chosen = [node for node in nodes if node.name == "index"]
    fits = all(
        len(node.inputs) == 2
        and graph.dtype(node.inputs[1]) == "bool"
        and "float" in graph.dtype(node.inputs[0])
        and graph.shape(node.inputs[0]) == graph.shape(node.inputs[1])
        for node in chosen
    )
    rows = {graph.shape(value)[0] for value in taken}
    whole = all(numbers == set(range(graph.shape(value)[0])) for value, numbers in taken.items())
    return fits and whole and len(rows) == 1 and len(chosen) == lines * min(rows)


def _made(source: Source, loop: cst.For, name: str, names: list[str]) -> Statement:
    """The statement above the loop, in its block, that makes the empty list, or several of the loop's."""
    block = source.block(loop)
    for line in block[: block.index(loop)]:
        small = alone(line)
        target = only_target(small)
        if isinstance(small, cst.Assign) and target is not None:
            targets = source.code(target).split(", ")
            value = source.code(small.value)
            if name in targets and set(targets) <= set(names) and value == ", ".join(["[]"] * len(targets)):
                return line
    raise Refused("the list of results is not created directly above the loop")


def _put_joined(source: Source, edits: Edits, loop: cst.For, one: Masked, made: Statement) -> None:
    """Leave out the call that makes a tensor of the list."""
    block = source.block(loop)
    for line in block[block.index(loop) + 1 :]:
        small = alone(line)
        value = small.value if isinstance(small, cst.Assign) else None
        given = source.code(value.args[0]) if isinstance(value, cst.Call) and len(value.args) == 1 else ""
        if not isinstance(value, cst.Call) or given != one.pieces:
            continue
        itself = source.code(only_target(small) or value) == one.pieces
        joins = ("torch.cat", "torch.concat") if one.one else ("torch.stack",)
        elsewhere = [
            use
            for use in source.uses(one.pieces, source.scope(loop))
            if not any(source.inside(use, part) for part in (made, loop, line))
            and not (itself and source.line(use) > source.line(line))
        ]
        if source.is_named(value.func, *joins) and not elsewhere:
            if itself:
                edits.remove(line)
            else:
                edits.replace(value, one.pieces)
            return
    raise Refused("the list of results is used elsewhere, too, or not stacked")
