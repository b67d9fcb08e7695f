"""Convolutions of width 1 between transposes: linear layers that are given another layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.constants import related
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph, Node, Ref
from warpline.rulekit.graph.pointwise import POINTWISE
from warpline.rulekit.terms import function_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method, only_target
from warpline.wire.dataflow import CONVOLUTIONS, TURNS

_NORMS = frozenset({"native_layer_norm", "layer_norm"})
_CASTS = frozenset({"_to_copy", "to"})  # autocast's, too: they keep the layout
_DROPOUTS = frozenset({"dropout", "native_dropout"})
_BETWEEN = POINTWISE | _CASTS | _DROPOUTS
#: Beside one of these, a line's time is not a convolution's alone.
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::matmul")
_SIZES = ("shape", "size", "view", "reshape", "unflatten", "flatten", "squeeze", "unsqueeze")
#: What a layer without these is given: stride, padding, dilation and groups of a product.
_PLAIN = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
#: Layers of torch that may hold some of the script's.
_HOLD = {"Sequential", "ModuleList", "ModuleDict", "DataParallel", "TransformerEncoder", "TransformerDecoder"}
_ORDER = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias")


@dataclass(frozen=True, slots=True)
class Pointwise:
    """The convolutions of one function, the transposes around them, the lines of the first, and all operators
    from one transpose on to what reads its results when they are turned back."""

    convolutions: list[Node]
    transposes: list[Node]
    costs: list[LineCost]
    once: list[Node]


def pointwise_convolutions(context: Context, graph: Graph) -> Iterator[Pointwise]:
    """The functions whose convolutions have width 1, and are given and give transposed tensors only."""
    functions: dict[tuple[str, str], list[Node]] = {}
    for node in graph.nodes:
        site = graph.site(node)
        if node.name in CONVOLUTIONS and site is not None:
            functions.setdefault((site.file, site.function), []).append(node)
    for nodes in functions.values():
        if not all(_is_pointwise(graph, node) for node in nodes):
            continue
        before = [graph.producer.get(_uncast(graph, node.inputs[0])) for node in nodes]
        entries = [one for one in dict.fromkeys(before) if one is not None and _is_turn(graph, one)]
        around = _around(graph, nodes, entries)
        transposes = [node for node in around if _is_turn(graph, node)]
        places = {place for node in nodes if (place := graph.place(node)) is not None}
        costs = context.costs(sorted(places))
        whole = set(nodes) <= set(around) and len(transposes) > len(entries)
        if whole and not any(op.name in _PRODUCTS and op.outer for cost in costs for op in cost.ops):
            once = _around(graph, nodes, entries[:1])
            yield Pointwise(nodes, transposes, costs, [*once, *_readers(graph, once)])


def _uncast(graph: Graph, value: int) -> int:
    """What a value is a cast of, or itself."""
    while (node := graph.producer.get(value)) is not None and node.name in _CASTS and node.inputs:
        value = node.inputs[0]
    return value


def _is_pointwise(graph: Graph, node: Node) -> bool:
    """Whether it is a product of each place's channels with the weight."""
    if len(node.arguments) < 9 or not isinstance(node.arguments[1], Ref):
        return False
    weight = graph.shape(node.arguments[1].value)
    stride, padding, turned, groups = (node.arguments[at] for at in (3, 4, 6, 8))
    return (
        len(weight) == len(graph.shape(node.outputs[0])) == 3
        and weight[2] == 1
        and (stride, padding, turned, groups) == ((1,), (0,), False, 1)
    )


def _is_turn(graph: Graph, node: Node) -> bool:
    """Whether it swaps the last two of three dimensions."""
    return node.name in TURNS and graph.order(node) == (0, 2, 1)


def _around(graph: Graph, nodes: list[Node], entries: list[Node]) -> list[Node]:
    """``entries``, which are transposes before ``nodes``, and all that works on what they turn, up to the
    transposes after them; [] where that is more than ``nodes``, and what computes with each number by
    itself."""
    found = dict.fromkeys(entries)
    turned = {value for one in entries for value in one.outputs}
    for node in graph.nodes:
        read = [value for value in node.inputs if value in turned]
        if not read or node.name == "detach" or node in found:
            continue
        of_each = node.name in _BETWEEN and all(one in turned or graph.size(one) == 1 for one in node.inputs)
        if of_each or (node in nodes and read == [node.inputs[0]]):
            turned.update(node.outputs)
        elif not _is_turn(graph, node):
            return []
        found[node] = None
    return [*found]


def _readers(graph: Graph, once: list[Node]) -> list[Node]:
    """A dropout that reads the last result, a sum that does, and a norm: for them it lies in another order,
    too."""
    found = [once[-1]]
    for names in (_DROPOUTS, POINTWISE, _NORMS):
        after = [one for one in graph.consumers.get(found[-1].outputs[0], ()) if one.name != "detach"]
        if len(after) == 1 and after[0].name in names:
            found.append(after[0])
    return found[1:]


class _Left(cst.CSTTransformer):
    """Leaves some calls of methods out, but for what they are called on."""

    def __init__(self, calls: list[cst.Call]) -> None:
        self.calls = calls

    def leave_Call(  # LibCST's name
        self, original_node: cst.Call, updated_node: cst.Call
    ) -> cst.BaseExpression:
        if any(original_node is one for one in self.calls) and isinstance(updated_node.func, cst.Attribute):
            return updated_node.func.value
        return updated_node


def as_linear(context: Context, graph: Graph, found: Pointwise) -> Fix:
    """Make linear layers of the convolutions, and leave the transposes out. Raises Refused where more of the
    script is about their weights or sizes than can be followed."""
    places = [graph.place(node) for node in (*found.convolutions, *found.transposes)]
    files = {place[0] for place in places if place is not None}
    lines = sorted({place[1] for place in places if place is not None})
    if None in places or len(files) != 1:
        raise Refused("the transposes are in another file")
    if any(True for _ in context.calls("load_state_dict")):
        raise Refused("weights that are loaded have the shape of a convolution's")
    own = set(found.transposes)
    others = [node for place in places if place is not None for node in graph.at(place)]
    if any(node.name in TURNS and node not in own for node in others):
        raise Refused("other tensors are transposed on these lines")
    source = context.source(*files)
    functions = {function_at(source, line) for line in lines}
    function = next(iter(functions))
    owner = source.enclosing(function, cst.ClassDef) if function is not None else None
    if len(functions) != 1 or function is None or owner is None:
        raise Refused("the transposes are in another function")
    if any(one.attr.value in _SIZES for one in source.nodes(cst.Attribute, within=function)):
        raise Refused(f"`{function.name.value}` reads sizes, which would change places")
    edits = Edits(source)
    _turned_away(source, edits, function, {place[1] for place in map(graph.place, own) if place is not None})
    used = [call for line in lines for call in source.calls(line) if source.inside(call, function)]
    names = {
        call.func.attr.value
        for call in used
        if isinstance(call.func, cst.Attribute) and source.code(call.func.value) == "self"
    }
    layers = {name: made for name in names if (made := _made(source, owner, name)) is not None}
    weights = {_uncast(graph, node.inputs[1]) for node in found.convolutions}
    written = len({graph.place(node) for node in found.convolutions})
    if not layers or len(layers) < written or len(weights) % len(layers):
        raise Refused("its layers are not plain attributes")
    if any(map(_tells_convolutions_apart, context.sources())):
        raise Refused("the script treats convolutions by their class, as for their first weights")
    for name, made in layers.items():
        _refuse_other_uses(context, function, owner, name)
        _replaced(source, edits, made)
    return edits.fix("Use nn.Linear, without the transposes", "unsafe")


def _turned_away(source: Source, edits: Edits, function: cst.FunctionDef, lines: set[int]) -> None:
    """Leave the transposes on these lines out. Raises Refused where one is no method's call."""
    calls = [
        call
        for call in source.nodes(cst.Call, within=function)
        if source.line(call) in lines and is_method(call, *TURNS)
    ]
    functions = any(source.name(call.func).startswith("torch.") for call in calls)
    if functions or {source.line(call) for call in calls} != lines:
        raise Refused("the transposes are not written as methods")
    for statement in dict.fromkeys(source.statement(call) for call in calls):
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        value = small.value if isinstance(small, (cst.Assign, cst.Return)) else None
        if statement is None or value is None:
            raise Refused("the transposes are not in plain statements")
        new, target = value.visit(_Left(calls)), only_target(small)
        assert isinstance(new, cst.BaseExpression)
        if isinstance(target, cst.Name) and isinstance(new, cst.Name) and target.value == new.value:
            edits.remove(statement)
        else:
            edits.replace(value, new)


def _made(source: Source, owner: cst.ClassDef, name: str) -> cst.Call | None:
    """The call of ``nn.Conv1d`` that the class gives this attribute, if it is one of width 1."""
    given = source.assigned(f"self.{name}", within=owner)
    made = given[0] if len(given) == 1 else None
    return made if isinstance(made, cst.Call) and source.is_named(made.func, "torch.nn.Conv1d") else None


def _tells_convolutions_apart(source: Source) -> bool:
    """Whether a file names the class other than to make a layer, or may compare classes' names. Not a class
    of torch's own layers, which only looks at these."""
    if any("Conv" in str(source.literal(one)) for one in source.nodes(cst.SimpleString)):
        return True
    for one in source.nodes(cst.Name, cst.Attribute):
        if source.is_named(one, "torch.nn.Conv1d", "torch.nn.modules.conv._ConvNd"):
            above = source.parent(one)
            called = isinstance(above, cst.Call) and above.func is one
            imported = isinstance(above, (cst.ImportAlias, cst.Attribute))
            if not (called or imported or _looks_at_own(source, one)):
                return True
    return False


def _looks_at_own(source: Source, node: cst.CSTNode) -> bool:
    """Whether ``node`` is in a loop over ``self.modules()`` of a class that has only torch's own layers."""
    owner, loop = source.enclosing(node, cst.ClassDef), source.enclosing(node, cst.For)
    if owner is None or loop is None or source.code(loop.iter) != "self.modules()":
        return False
    given = [
        one.value
        for one in source.nodes(cst.Assign, within=owner)
        if any(source.code(target.target).startswith("self.") for target in one.targets)
    ]
    names = [source.name(one.func) if isinstance(one, cst.Call) else "" for one in given]
    return all(one.startswith("torch.nn.") and one.removeprefix("torch.nn.") not in _HOLD for one in names)


def _refuse_other_uses(context: Context, function: cst.FunctionDef, owner: cst.ClassDef, name: str) -> None:
    """Raises Refused where an attribute of this name is more than assigned, and called in ``function``. What
    another class gives itself by this name is something else."""
    for other in context.sources():
        for one in other.nodes(cst.Attribute):
            if one.attr.value != name or _is_apart(other, one, owner):
                continue
            above = other.parent(one)
            called = isinstance(above, cst.Call) and above.func is one and other.inside(one, function)
            weighed = isinstance(above, cst.Attribute) and above.attr.value in ("weight", "bias")
            filled = weighed and isinstance(above, cst.CSTNode) and isinstance(other.parent(above), cst.Arg)
            if not (called or filled or isinstance(above, cst.AssignTarget)):
                raise Refused(f"`{name}` is used elsewhere, too")


def _is_apart(source: Source, used: cst.Attribute, owner: cst.ClassDef) -> bool:
    """Whether it is the attribute of another class, which gives it to itself, and of no relative."""
    other = source.enclosing(used, cst.ClassDef)
    if other is None or other is owner or source.code(used.value) != "self":
        return False
    return bool(source.assigned(f"self.{used.attr.value}", within=other)) and not related(other, owner)


def _replaced(source: Source, edits: Edits, made: cst.Call) -> None:
    """``nn.Linear(…)`` for a convolution of width 1. Raises Refused for others, or other arguments."""
    passed = source.arguments(made, _ORDER)
    if passed is None:
        raise Refused("the convolution has other arguments")
    given = {name: arg.value for name, arg in passed.items()}
    if source.literal(given.get("kernel_size")) not in (1, (1,), [1]):
        raise Refused("the convolution's width is not written as 1")
    sizes = [given.get(name) for name in _ORDER[:2]]
    rest = {name: one for name, one in given.items() if name not in _ORDER[:3]}
    for name, plain in _PLAIN.items():
        if name in rest and source.literal(rest.pop(name)) != plain:
            raise Refused("the convolution has other arguments")
    if None in sizes or rest.keys() - {"bias", "device", "dtype"}:
        raise Refused("the convolution has other arguments")
    words = [source.code(one) for one in sizes if one is not None]
    words += [f"{name}={source.code(one)}" for name, one in rest.items()]
    func = made.func
    layer = (
        f"{source.code(func.value)}.Linear"
        if isinstance(func, cst.Attribute)
        else edits.add_import("torch.nn.Linear", "from torch.nn import Linear")
    )
    edits.replace(made, f"{layer}({', '.join(words)})")
