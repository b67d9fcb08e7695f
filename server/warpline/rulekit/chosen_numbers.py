"""Tensors that hold one number and are only made for ``torch.where``, which takes the number itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph, Node, Ref
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source

_WHERE = "torch.where"
#: Names that stand for a number: chosen, so that a circle of them ends.
_DEPTH = 4
#: Where these functions take their number, by position and name; None: the number that they fill with.
_FUNCTIONS: dict[str, tuple[int, str] | str] = {
    "torch.full": (1, "fill_value"),
    "torch.full_like": (1, "fill_value"),
    "torch.zeros": "0.0",
    "torch.zeros_like": "0.0",
    "torch.ones": "1.0",
    "torch.ones_like": "1.0",
}
#: The same of methods of a tensor.
_METHODS: dict[str, tuple[int, str] | str] = {
    "new_full": (1, "fill_value"),
    "new_zeros": "0.0",
    "new_ones": "1.0",
}
_FILLS = frozenset({name.rpartition(".")[2] for name in (*_FUNCTIONS, *_METHODS)})
#: What a number may call: each gives the same in the next line.
_OF_NUMBERS = ("float", "torch.finfo", "torch.iinfo", "numpy.finfo")


@dataclass(frozen=True, slots=True)
class Chosen:
    """``nodes`` fill tensors with one number at ``place``; ``fix`` gives ``torch.where`` the number."""

    nodes: list[Node]
    place: tuple[str, int]
    fix: Fix


def chosen_numbers(context: Context, graph: Graph) -> Iterator[Chosen]:
    """Each line that makes such tensors, where the text can be changed."""
    found: dict[tuple[str, int], dict[int, Node]] = {}
    choosing: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for node in graph.nodes:
        if node.name != "where" or len(node.arguments) != 3:
            continue
        for position in (1, 2):
            made = _made(graph, node, position)
            place = graph.place(made[-1]) if made else None
            chooses = graph.place(node)
            if place is not None and chooses is not None and chooses[0] == place[0]:
                found.setdefault(place, {}).update((one.index, one) for one in made)
                choosing.setdefault(place, set()).add(chooses)
    for place, nodes in found.items():
        try:
            fix = _fix(context.source(place[0]), place, choosing[place])
        except Refused:
            continue
        yield Chosen(list(nodes.values()), place, fix)


def _made(graph: Graph, node: Node, position: int) -> list[Node]:
    """The operators that make the argument of a ``where``, if that is one number which nothing else reads,
    and the result has the shape and the type of the other argument without it."""
    chosen, other = node.arguments[position], node.arguments[3 - position]
    if not isinstance(chosen, Ref) or not isinstance(other, Ref):
        return []
    shapes = [graph.shape(other.value), graph.shape(node.inputs[0])]
    kind = graph.dtype(chosen.value)
    if graph.shape(node.outputs[0]) not in shapes or kind != graph.dtype(other.value):
        return []
    made: list[Node] = []
    value, reader = chosen.value, node
    while graph.consumers.get(value) == [reader] and graph.size(value) > 1:
        maker = graph.producer.get(value)
        if maker is None or graph.is_in_place(maker):
            return []
        made.insert(0, maker)
        given = [one for one in maker.arguments if isinstance(one, (int, float))]
        if maker.name in _FILLS:
            # A number of another kind would be rounded to the tensor's.
            return made if kind.startswith(("float", "bfloat")) else []
        if maker.name != "mul" or len(maker.inputs) != 1 or len(given) != 1:
            return []
        value, reader = maker.inputs[0], maker
    return []


def _fix(source: Source, place: tuple[str, int], choosing: set[tuple[str, int]]) -> Fix:
    """Give the number to each ``torch.where`` that takes what ``place`` makes. Raises Refused where another
    use of it is written, or the number may be another one there."""
    calls = [
        call
        for _, line in sorted(choosing)
        for call in source.calls(line)
        if source.name(call.func) == _WHERE
    ]
    arguments = [arg for call in dict.fromkeys(calls) for arg in call.args[1:3] if not arg.keyword]
    edits = Edits(source)
    direct = [
        (arg.value, number)
        for arg in arguments
        if source.line(arg.value) == place[1] and (number := _number(source, arg.value))
    ]
    names = _names(source, arguments, place)
    if len(direct) == 1 and not names:
        return edits.replace(*direct[0]).fix("Choose the number itself", "safe")
    if direct or len(names) != 1:
        raise Refused("it is not made for `torch.where` on one line")
    ((name, (assign, number)),) = names.items()
    uses = [one for one in source.uses(name, source.scope(assign)) if not source.inside(one, assign)]
    given = [arg.value for arg in arguments]
    statement = source.statement(assign)
    if statement is None or not uses or any(not any(one is value for value in given) for one in uses):
        raise Refused(f"`{name}` is used otherwise, too")
    for one in uses:
        edits.replace(one, number)
    edits.remove(statement)
    return edits.fix("Choose the number itself", "safe")


def _names(
    source: Source, arguments: list[cst.Arg], place: tuple[str, int]
) -> dict[str, tuple[cst.Assign, str]]:
    """What plain assignments on the line make of one number, of the arguments that are names."""
    found = {}
    for name in (arg.value for arg in arguments if isinstance(arg.value, cst.Name)):
        bound = [one for one in source.uses(name.value, source.scope(name)) if source.binds(one)]
        assign = source.enclosing(bound[0], cst.Assign) if len(bound) == 1 else None
        number = _number(source, assign.value) if assign is not None else None
        alone = assign is not None and len(assign.targets) == 1 and source.line(assign) == place[1]
        if assign is not None and number is not None and alone:
            found[name.value] = assign, number
    return found


def _number(source: Source, made: cst.BaseExpression) -> str | None:
    """The number that an expression fills a tensor with, as it is written; None for other expressions."""
    if isinstance(made, cst.BinaryOperation) and isinstance(made.operator, cst.Multiply):
        for one, other in ((made.left, made.right), (made.right, made.left)):
            if _number(source, one) == "1.0" and _is_number(source, other):
                return source.code(other)
        return None
    if not isinstance(made, cst.Call) or any(arg.star for arg in made.args):
        return None
    takes = _FUNCTIONS.get(source.name(made.func))
    if takes is None and isinstance(made.func, cst.Attribute):
        takes = _METHODS.get(made.func.attr.value)
    if not isinstance(takes, tuple):
        return takes
    given = source.argument(made, takes[1], takes[0])
    return source.code(given.value) if given is not None and _is_number(source, given.value) else None


def _is_number(source: Source, value: cst.BaseExpression, left: int = _DEPTH) -> bool:
    """Whether an expression is a number by its text, and the same on a later line."""
    calls = source.nodes(cst.Call, within=value)
    if any(source.name(call.func) not in _OF_NUMBERS for call in calls) and calls:
        return False
    if isinstance(source.literal(value), (int, float)) and not isinstance(source.literal(value), bool):
        return True
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        return _is_number(source, value.expression, left)
    if isinstance(value, cst.Call):
        return source.name(value.func) == "float"
    if isinstance(value, cst.Attribute):
        of_type = isinstance(value.value, cst.Call) and bool(calls)
        return of_type or source.name(value) in ("math.inf", "torch.inf", "numpy.inf")
    constant = source.constant(value.value) if isinstance(value, cst.Name) and left else None
    return constant is not None and _is_number(source, constant, left - 1)
