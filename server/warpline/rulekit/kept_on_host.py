"""Tensors of the host that the script keeps, where each step copies a part of one to the device.

They are followed through the text from the copy to the place that makes them: through views, names,
attributes of objects, parameters, functions that return them, and lists and dicts. What the copy reads is
taken from the recorded step where it has the copy: rows of a tensor from before the step, and not rows that
an index put together in new memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.copies import FileLine, move_calls, moved_to, moves_at
from warpline.rulekit.flags import attributes_assigned
from warpline.rulekit.fresh import BY_HAND, MAKES, PROCESSES, changes, make_pinned
from warpline.rulekit.graph.graph import PIECE, PIECES, Graph, Node, graph_of
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.rulekit.origins import assigned_values, field_names, fields, is_self, only_value
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, is_method, is_whole, only_target, receiver, taken
from warpline.wire.sites import Loader, facts_of

#: Methods that give a view, as far as the record does not say otherwise.
_SAME_MEMORY = (
    "view", "view_as", "narrow", "select", "unbind", "split", "chunk", "detach", "unsqueeze", "squeeze",
    "flatten", "unflatten", "reshape",
)  # fmt: skip
#: They share the memory of the array that they are given.
_OF_ARRAYS = ("torch.from_numpy", "torch.as_tensor", "torch.asarray", "torch.frombuffer")
#: The same as functions of torch's, and what else gives several tensors.
_PARTS = tuple(f"torch.{name}" for name in ("split", "chunk", "unbind", "tensor_split", "narrow", "select"))
#: They give several tensors, and one of these is taken.
_TAKE_APART = ("split", "chunk", "unbind", "tensor_split")
#: Where these methods get the dimension that they take apart.
_DIMENSION = {"split": 1, "chunk": 1, "tensor_split": 1, "unbind": 0, "narrow": 0, "select": 0}
_SEVERAL = (
    "split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "meshgrid", "topk", "sort",
    "max", "min", "median", "mode", "kthvalue", "unique", "where", "nonzero", "svd", "qr", "eigh", "load",
    "frexp", "histogram", "broadcast_tensors", "device", "compile",
)  # fmt: skip
_DEPTH = 12  # names that are followed one after the other: chosen, so that a circle ends


@dataclass(frozen=True, slots=True)
class Kept:
    """``node``: the expression that makes the tensor, in ``source``. ``named``: what the script calls it on
    the way to the copy, with the source of each name. ``several``: it makes a "list" or a "dict" of them, or
    one ("")."""

    source: Source
    node: cst.BaseExpression
    named: tuple[tuple[Source, cst.BaseExpression], ...]
    several: str = ""

    @property
    def place(self) -> FileLine:
        """The file and the line that makes it."""
        return self.source.place(self.node)


@dataclass
class _Path:
    """``indices``: what is still to be taken of what is followed, the outermost first; None: a loop's turn.
    ``named``: the names so far."""

    context: Context
    indices: list[cst.BaseExpression | None] = field(default_factory=list)
    named: list[tuple[Source, cst.BaseExpression]] = field(default_factory=list)


def kept_on_host(context: Context, place: FileLine) -> list[Kept]:
    """The tensors that the moves on a line copy parts of, each once. Raises Refused where one of them is not
    followed to the only place that makes it, is another one in each step, may be written to later, or is not
    copied as it lies in memory."""
    found: dict[int, Kept] = {}
    source = context.source(place[0])
    if any(name.value in PROCESSES or name.value == "share_memory_" for name in source.nodes(cst.Name)):
        raise Refused(BY_HAND)
    views = _views(context, place)
    moves = move_calls(source, place[1])
    for move in moves:
        if "dtype" in moved_to(source, move):
            raise Refused(f"{BY_HAND}, and convert it on the device, or it is copied elsewhere first")
        path, node = _Path(context), receiver(move) or move
        whole, parts = _viewed(node)
        if views is not None and 0 < views >= parts:  # all of these are taken of the tensor itself
            node = whole
        one = _followed(path, source, node, _DEPTH, views is not None)
        _check_lasting(context, one, (source, move))
        found[id(one.node)] = one
    if not moves:
        raise Refused(BY_HAND)
    return list(found.values())


def pin(context: Context, kept: Kept, edits: Edits, copied: FileLine) -> None:
    """Makes the tensor that the line ``copied`` copies in pinned memory: only where there is a GPU, unless
    that line needs one. Raises Refused."""
    moves = move_calls(context.source(copied[0]), copied[1])
    always = all(is_method(move, "cuda") or _needs_gpu(context, copied[0], move) for move in moves)
    source, node = kept.source, kept.node
    if not kept.several and isinstance(node, cst.Call) and source.name(node.func) in MAKES:
        make_pinned(source, node, edits)
        return
    code = source.code(node)
    if always and not kept.several:
        edits.replace(node, f"{source.operand(node)}.pin_memory()")
        return
    available = f"{edits.add_import('torch', 'import torch')}.cuda.is_available()"
    assign = source.parent(node)
    target = only_target(assign)
    statement = source.statement(node)
    if isinstance(assign, cst.AnnAssign):
        around = source.enclosing(assign, cst.FunctionDef, cst.ClassDef)
        target = None if isinstance(around, cst.ClassDef) else assign.target
    if isinstance(target, cst.Subscript):  # of a name, or it may be another one when it is read again
        part = target.slice[0].slice
        named = isinstance(part, cst.Index) and isinstance(part.value, (cst.Name, cst.SimpleString))
        target = target if named else None
    if isinstance(target, (cst.Name, cst.Attribute, cst.Subscript)) and statement is not None:
        name = source.code(target)
        pinned = {
            "": f"{name}.pin_memory()",
            "list": f"[one.pin_memory() for one in {name}]",
            "dict": f"{{key: one.pin_memory() for key, one in {name}.items()}}",
        }[kept.several]
        line = f"{name} = {pinned}"
        edits.insert_after(statement, line if always else f"if {available}:\n    {line}")
    elif kept.several or "\n" in code:
        raise Refused(BY_HAND)
    else:
        choice = f"{source.operand(node)}.pin_memory() if {available} else {code}"
        alone = isinstance(assign, (cst.Return, cst.Arg, cst.Element, cst.DictElement))
        edits.replace(node, choice if alone else f"({choice})")


def _viewed(node: cst.BaseExpression) -> tuple[cst.BaseExpression, int]:
    """``(x, 2)`` of ``x[i].view(-1)``: what is indexed or viewed, and how often."""
    count = 0
    while True:
        if isinstance(node, cst.Subscript):
            count += len(node.slice)
            node = node.value
        elif is_method(node, *_SAME_MEMORY):
            count += 1
            node = receiver(node) or node
        else:
            return node, count


def _needs_gpu(context: Context, file: str, move: cst.Call) -> bool:
    """Whether a move is to a GPU, as it is written there."""
    literal = context.source(file).literal(move.args[0].value) if move.args else None
    return isinstance(literal, str) and literal.startswith("cuda")


def _views(context: Context, place: FileLine) -> int | None:
    """How many views a line takes, as the record shows, of the tensors from before the step that it copies
    rows of: the fewest, where it copies several. None where the record has no such copy, or other lines take
    some. Raises Refused where it shows anything else, or that the step writes to them."""
    flow = context.profile.facts.dataflow
    graph = graph_of(flow) if flow.name else None
    copies = [one for one in graph.at(place) if one.name == "_to_copy"] if graph is not None else []
    if graph is None or not copies:
        return None
    here, least, family = True, len(graph.nodes), storages(graph)
    written = {family(node.inputs[0]) for node in graph.nodes if node.inputs and graph.is_in_place(node)}
    for copy in copies:
        if not copy.inputs:
            raise Refused(BY_HAND)
        value, views = copy.inputs[0], 0
        while (node := graph.producer.get(value)) is not None:
            if node.name not in VIEWS or not _of_rows(graph, node, value):
                raise Refused("each step puts what is copied together in new memory: do that on the device")
            here &= graph.place(node) == place
            value, views = node.inputs[0], views + 1
        least = min(least, views)
        if family(value) in written:
            raise Refused(BY_HAND)
    return least if here else None


def _of_rows(graph: Graph, node: Node, value: int) -> bool:
    """Whether a view leaves what it takes in one piece, if it was: rows that lie one after the other."""
    before = graph.shape(node.inputs[0])
    if node.name in PIECE | PIECES:
        stride = node.argument(4, "step", 1) if node.name == "slice" else 1
        return graph.shape(value) == before or (graph.along(node) == 0 and stride == 1)
    return node.name in ("view", "_unsafe_view", "unsqueeze", "squeeze", "alias", "detach", "_reshape_alias")


def _followed(path: _Path, source: Source, node: cst.BaseExpression, left: int, sure: bool) -> Kept:
    """The place that makes ``node``, to take the path of it. ``sure``: the record shows that it, or the
    path's index of it, is a tensor. Raises Refused."""
    if not left:
        raise Refused(BY_HAND)
    if isinstance(node, cst.Subscript):
        first, *rest = (one.slice for one in node.slice)
        if isinstance(first, cst.Index) and not rest:
            path.indices.insert(0, first.value)
        elif not isinstance(first, cst.Slice) or first.step is not None or not all(map(is_whole, rest)):
            raise Refused(BY_HAND)
        return _followed(path, source, node.value, left - 1, sure)
    if isinstance(node, cst.Call) and (held := receiver(node)) is not None:
        function = source.name(node.func) in _PARTS and bool(node.args)
        if function or (is_method(node, *_SAME_MEMORY) and not source.name(node.func).startswith("torch.")):
            at = _DIMENSION.get(called_name(node))
            if at is not None and source.passed(node, "dim", at + function, 0) != 0:
                raise Refused(BY_HAND)  # not in one piece
            if called_name(node) in _TAKE_APART and path.indices:
                path.indices.pop(0)
            whole = node.args[0].value if function else held
            return _followed(path, source, whole, left - 1, sure)
    if isinstance(node, (cst.Name, cst.Attribute)):
        path.named.append((source, node))
        turn = _turn_of(source, node) if isinstance(node, cst.Name) else None
        if turn is not None:
            path.indices.insert(0, None)
            return _followed(path, source, turn, left - 1, sure)
        where, given = _given(path.context, source, node)
        return _followed(path, where, given, left - 1, sure)
    return _made(path, source, node, left, sure)


def _made(path: _Path, source: Source, node: cst.BaseExpression, left: int, sure: bool) -> Kept:
    """The place that makes what ``node`` computes."""
    if isinstance(node, (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp)):
        return _in_container(path, source, node, left, sure)
    back = source.returned(node)
    if back is not None:
        return _followed(path, source, back, left - 1, sure)
    is_field = isinstance(node, cst.Call) and source.is_named(node.func, "field")  # of a dataclass
    if is_field or (not _is_tensor(source, node) and (path.indices or not sure)):
        raise Refused(BY_HAND)
    return _kept(path, source, node, sure)


def _kept(path: _Path, source: Source, node: cst.BaseExpression, sure: bool, several: str = "") -> Kept:
    """What is found: the rest of the path takes rows of it. Raises Refused where that may be a list of rows,
    or a mask, which makes new memory."""
    if not sure and any(one is None or type(source.literal(one)) is not int for one in path.indices):
        raise Refused(BY_HAND)
    return Kept(source, node, tuple(path.named), several)


def _in_container(path: _Path, source: Source, node: cst.BaseExpression, left: int, sure: bool) -> Kept:
    """The place that makes an entry of a list or a dict; of all, where any may be meant."""
    if not path.indices:
        raise Refused(BY_HAND)
    wanted = path.indices.pop(0)
    if isinstance(node, (cst.ListComp, cst.DictComp)):
        made, kind = (node.elt, "list") if isinstance(node, cst.ListComp) else (node.value, "dict")
        if not _is_tensor(source, made):
            raise Refused(BY_HAND)
        return _kept(path, source, node, sure, kind)
    entries: list[tuple[object, cst.BaseExpression]] = []
    for at, one in enumerate(node.elements if isinstance(node, (cst.Dict, cst.List, cst.Tuple)) else ()):
        if not isinstance(one, cst.StarredDictElement):
            key = source.literal(one.key) if isinstance(one, cst.DictElement) else at
            entries.append((key, one.value))
    if not entries:
        return _put_in(path, source, sure)
    key = source.literal(wanted) if wanted is not None else None
    chosen = [value for name, value in entries if name == key and wanted is not None]
    if len(chosen) == 1:
        return _followed(path, source, chosen[0], left - 1, sure)
    raise Refused(BY_HAND)


def _put_in(path: _Path, source: Source, sure: bool) -> Kept:
    """The place that makes what is put into a list or a dict that was empty: the only one."""
    put: list[cst.BaseExpression] = []
    for use in (use for where, use in _uses(path.context, path.named) if where is source):
        held = source.parent(use)
        call = source.parent(held) if isinstance(held, cst.Attribute) else None
        if isinstance(held, cst.Subscript):
            assign = source.enclosing(held, cst.Assign)
            if assign is not None and any(one.target is held for one in assign.targets):
                put.append(assign.value)
        elif is_method(call, "append", "extend", "insert", "update", "setdefault"):
            if called_name(call) != "append":
                raise Refused(BY_HAND)
            put += [arg.value for arg in call.args]
    if len(put) != 1 or not _is_tensor(source, put[0]):
        raise Refused(BY_HAND)
    return _kept(path, source, put[0], sure)


def _turn_of(source: Source, name: cst.Name) -> cst.BaseExpression | None:
    """What a loop goes over whose variable is ``name``; None if no loop around has that variable."""
    for loop in source.loops(name):
        if not isinstance(loop, cst.For) or source.inside(name, loop.iter):
            continue
        targets = [one for one in source.nodes(cst.Name, within=loop.target) if one.value == name.value]
        if not targets:
            continue
        for target, over in taken(loop.target, loop.iter):
            if source.inside(targets[0], target) and is_method(over, "items", "values"):
                return receiver(over) or over
            if target is targets[0]:
                return over
        raise Refused(BY_HAND)
    return None


def _given(
    context: Context, source: Source, node: cst.Name | cst.Attribute
) -> tuple[Source, cst.BaseExpression]:
    """The only value of a name, or of an attribute, whatever object has it. Raises Refused."""
    found = assigned_values(context, source, node)
    if isinstance(node, cst.Attribute):
        name, classes = node.attr.value, _classes(context, source, node.value)
        passed = [
            (other, argument.value)
            for where, owner in context.classes()
            if owner.name.value in classes and name in (names := field_names(where, owner))
            for other, call in context.calls(owner.name.value)
            if (argument := other.argument(call, name, names.index(name))) is not None
        ]
        defaults = [
            (one.source, one.node)
            for one in fields(context, name)
            if (owner := one.source.enclosing(one.node, cst.ClassDef)) is not None
            and owner.name.value in classes
        ]
        found = passed or found or _assigned_in(context, name, classes) or defaults
    if len(found) != 1:
        raise Refused(BY_HAND)
    return found[0]


def _classes(context: Context, source: Source, node: cst.BaseExpression) -> set[str]:
    """The names of the class that an object is of, and of those that it is derived from; empty where that is
    not known."""
    owner = source.enclosing(node, cst.ClassDef) if is_self(node) else None
    found = {owner.name.value} if owner is not None else set()
    for _ in range(_DEPTH if owner is None else 0):
        if isinstance(node, cst.Call):
            back = source.returned(node)
            if back is None:
                found = {called_name(node)}
                break
            node = back
        given = only_value(context, source, node)
        if given is None:
            break
        source, node = given
    for _ in range(_DEPTH):
        for other, one in context.classes():
            if one.name.value in found:
                found |= {other.name(base.value).rpartition(".")[2] for base in one.bases}
    return found


def _assigned_in(context: Context, name: str, classes: set[str]) -> list[tuple[Source, cst.BaseExpression]]:
    """What methods of these classes give an attribute of their own object."""
    return [
        (source, assign.value)
        for source, assign, target in attributes_assigned(context, name)
        if is_self(target.value)
        and (owner := source.enclosing(assign, cst.ClassDef)) is not None
        and owner.name.value in classes
    ]


def _is_tensor(source: Source, node: cst.BaseExpression) -> bool:
    """Whether an expression makes a tensor, as it is written: one of torch's functions, or what a method
    makes of such a tensor."""
    if isinstance(node, cst.BinaryOperation):
        return _is_tensor(source, node.left) or _is_tensor(source, node.right)
    if isinstance(node, cst.Subscript):
        return _is_tensor(source, node.value)
    if not isinstance(node, cst.Call) or is_method(node, "numpy", "tolist", "item", *_SEVERAL):
        return False
    module, _, name = source.name(node.func).rpartition(".")
    if module == "torch":
        return name not in _SEVERAL and name.islower()
    return isinstance(node.func, cst.Attribute) and _is_tensor(source, node.func.value)


def _check_lasting(context: Context, kept: Kept, copy: tuple[Source, cst.Call]) -> None:
    """Raises Refused where it is made again in each step or for some steps, or may be written to later: a
    copy from pinned memory may still read it then."""
    source, node = kept.source, kept.node
    where, move = copy
    if context.cost(*kept.place) is not None:
        raise Refused(BY_HAND)  # made in each step
    scope = source.enclosing(node, cst.FunctionDef)
    if scope is None and any(facts_of(Loader, site).num_workers for site in context.sites(Loader.KIND)):
        raise Refused(BY_HAND)  # a worker that is spawned would pin it, too
    loops = source.loops(node)
    if where is source and any(loop in loops for loop in where.loops(move)):
        raise Refused(BY_HAND)
    for named, use in _uses(context, kept.named):
        if not _writes(named, use):
            continue
        early = named is source and named.enclosing(use, cst.FunctionDef) is scope
        early = early and not (where is named and set(named.loops(use)) & set(where.loops(move)))
        if not early or context.cost(*named.place(use)) is not None:
            raise Refused(BY_HAND)
    arrays = [
        call.args[0].value
        for call in source.nodes(cst.Call, within=node)
        if source.name(call.func) in _OF_ARRAYS and call.args
    ]
    for array in arrays:
        _check_array(context, source, array, _DEPTH)


def _uses(
    context: Context, named: Sequence[tuple[Source, cst.BaseExpression]]
) -> Iterator[tuple[Source, cst.Name | cst.Attribute]]:
    """Where one of these names stands, whatever object an attribute is of."""
    for source in context.sources():
        for use in _names(source):
            for where, name in named:
                same = source is where and source.code(use) == source.code(name)
                if isinstance(use, cst.Attribute) and isinstance(name, cst.Attribute):
                    same = use.attr.value == name.attr.value
                if same:
                    yield source, use
                    break


def _check_array(context: Context, source: Source, array: cst.BaseExpression, left: int) -> None:
    """Raises Refused where something writes later to an array that the tensor shared the memory of."""
    if not isinstance(array, (cst.Name, cst.Attribute)) or not left:
        return
    scope = source.enclosing(array, cst.FunctionDef)
    for use in _names(source):
        if source.code(use) != source.code(array) or not _writes(source, use):
            continue
        same = source.enclosing(use, cst.FunctionDef) is scope
        later = source.line(use) >= source.line(array) if same else scope is None
        if later or isinstance(array, cst.Attribute):
            raise Refused(
                "the array that the tensor shares is written to later, which would not reach a copy"
            )
    for where, given in assigned_values(context, source, array):
        _check_array(context, where, given, left - 1)


def _names(source: Source) -> list[cst.Name | cst.Attribute]:
    return [*source.nodes(cst.Name), *source.nodes(cst.Attribute)]


def _writes(source: Source, use: cst.Name | cst.Attribute) -> bool:
    """Whether the contents of what is named are changed there; another value for the name is none."""
    return not isinstance(source.parent(use), cst.AssignTarget) and changes(source, use)


def too_large(context: Context, kept: list[Kept], places: list[FileLine]) -> tuple[float, float] | None:
    """What pinning takes at most, and what the host had free, in bytes, where it does not fit; None where it
    does, or the run does not say. Both are recorded with the copies. torch takes pinned memory in powers of
    two, so up to twice as much. Of a list only parts are seen: all of it is in the process's memory."""
    moves = moves_at(context, *places)
    free = min((one.free_bytes for one in moves if one.free_bytes is not None), default=None)
    whole = sum(one.whole_bytes or 0 for one in moves)
    if any(one.several or _is_put(one) for one in kept):
        whole = max((one.resident_bytes or 0 for one in moves), default=0)
    return (2 * whole, free) if free is not None and 2 * whole > free else None


def _is_put(kept: Kept) -> bool:
    """Whether the tensor is put into a list or a dict."""
    above = kept.source.parent(kept.node)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    return isinstance(target, cst.Subscript) or isinstance(above, cst.Arg)
