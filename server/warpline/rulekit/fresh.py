"""The call that makes a new tensor of the host for each copy to the device that a line makes.

It is followed through the text: through loops, generators, objects with ``__iter__``, functions that return
it, and queues between threads."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.copies import move_calls, moved_to
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, receiver

#: Functions of torch's that take ``pin_memory``.
MAKES = tuple(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "rand", "randn", "randint"))
#: Calls that give a loop what they are given, in the same order.
_SAME_TURNS = ("iter", "tqdm", "tqdm.tqdm", "tqdm.auto.tqdm")
#: Methods that put something into a queue, and that take it out.
_PUT, _GET = ("put", "put_nowait"), ("get", "get_nowait")
#: What makes other processes, which cannot pin for this one.
PROCESSES = frozenset({"multiprocessing", "Process", "ProcessPoolExecutor"})
_DEPTH = 12  # names that are followed one after the other: chosen, so that a circle ends
#: Why there is no edit, where the tensor is not followed.
BY_HAND = "the copied tensor does not come from a known loader: call `.pin_memory()` where it is created"

#: Positions in tuples, the outermost first.
_Path = tuple[int, ...]


def pinned_where_made(source: Source, line: int, edits: Edits) -> None:
    """Makes what the line copies in pinned memory. Raises Refused where that is not followed, or a tensor is
    not a new one for each copy: the copy may still read it when the next turn fills it."""
    moves, made = move_calls(source, line), dict[int, cst.Call]()
    for move in moves:
        if "dtype" in moved_to(source, move):
            raise Refused(f"{BY_HAND}, and convert it on the device, or it is copied to other memory first")
        call = _made(source, receiver(move) or move, (), _DEPTH)
        made[id(call)] = call
    if not moves:
        raise Refused(BY_HAND)
    for call in made.values():
        make_pinned(source, call, edits)


def make_pinned(source: Source, call: cst.Call, edits: Edits) -> None:
    """Make a call of one of ``MAKES`` allocate pinned memory, where there is a GPU."""
    torch = source.code(call.func).rpartition(".")[0] or edits.add_import("torch", "import torch")
    edits.set_argument(call, "pin_memory", f"{torch}.cuda.is_available()")


def _made(source: Source, node: cst.BaseExpression, path: _Path, left: int) -> cst.Call:
    """The call that makes the tensor ``node``, or what is at ``path`` in it. Raises Refused."""
    if left and isinstance(node, cst.Name):
        return _of_name(source, node, path, left - 1)
    if left and path and isinstance(node, cst.Tuple) and path[0] < len(node.elements):
        return _made(source, node.elements[path[0]].value, path[1:], left - 1)
    if not left or not isinstance(node, cst.Call):
        raise Refused(BY_HAND)
    held, name = receiver(node), called_name(node)
    if not path and source.name(node.func) in MAKES:
        if any(source.argument(node, other) for other in ("device", "pin_memory", "out", "layout")):
            raise Refused(BY_HAND)
        return node
    if held is not None and name in _GET:
        return _made(source, _put(source, held), path, left - 1)
    if held is not None and not path and name.endswith("_"):  # `normal_()`: in place
        return _made(source, held, path, left - 1)
    if name == "next" and node.args:
        return _of_turn(source, node.args[0].value, path, left - 1)
    back = source.returned(node)
    if back is None:
        raise Refused(BY_HAND)
    return _made(source, back, path, left - 1)


def _put(source: Source, queue: cst.BaseExpression) -> cst.BaseExpression:
    """What is put into ``queue``, but for the ``None`` that tells its end. Raises Refused where that may be
    in another process, which cannot pin for this one."""
    if any(name.value in PROCESSES for name in source.nodes(cst.Name)):
        raise Refused(BY_HAND)
    found = []
    for call in source.nodes(cst.Call):
        held = receiver(call)
        if held is not None and source.code(held) == source.code(queue) and called_name(call) in _PUT:
            found += [arg.value for arg in call.args[:1] if source.literal(arg.value) is not None]
    if len(found) != 1:
        raise Refused(BY_HAND)
    return found[0]


def _of_name(source: Source, node: cst.Name, path: _Path, left: int) -> cst.Call:
    """Follows a name to the only place that gives it a value in each turn."""
    all_ = source.uses(node.value, source.scope(node))
    loops = [one for one in source.loops(node) if isinstance(one, cst.For)]
    around = next((one for one in loops if any(source.inside(name, one.target) for name in all_)), None)
    if around is not None:
        all_ = [one for one in all_ if source.inside(one, around)]
    bound = [one for one in all_ if _binds(source, one) and not _copied_into(source, one, node)]
    if len(bound) != 1 or any(_escapes(source, one, bound[0], node) for one in all_):
        raise Refused(BY_HAND)
    first = bound[0]
    if around is not None:
        return _of_turn(source, around.iter, (*_position(source, around.target, first), *path), left)
    named, assign = source.enclosing(first, cst.NamedExpr), source.enclosing(first, cst.Assign)
    block = source.parent(source.statement(first) or first)
    if source.loops(first)[:1] != source.loops(node)[:1] or block is None or not source.inside(node, block):
        raise Refused(BY_HAND)  # made once, before the loop, or not in each turn
    if named is not None and named.target is first:
        return _made(source, named.value, path, left)
    if assign is None or len(assign.targets) != 1 or not source.inside(first, assign.targets[0]):
        raise Refused(BY_HAND)
    place = _position(source, assign.targets[0].target, first)
    return _made(source, assign.value, (*place, *path), left)


def _of_turn(source: Source, node: cst.BaseExpression, path: _Path, left: int) -> cst.Call:
    """Follows what a loop over ``node`` gets in each turn."""
    if not left:
        raise Refused(BY_HAND)
    if isinstance(node, cst.Name):
        given = source.assigned(node.value, source.scope(node))
        if len(given) != 1:
            raise Refused(BY_HAND)
        return _of_turn(source, given[0], path, left - 1)
    if not isinstance(node, cst.Call):
        raise Refused(BY_HAND)
    name, given = source.name(node.func), [arg.value for arg in node.args]
    if name in ("zip", "enumerate") and path:
        at = path[0] if name == "zip" else path[0] - 1
        if not 0 <= at < len(given) or any(arg.star for arg in node.args):
            raise Refused(BY_HAND)
        return _of_turn(source, given[at], path[1:], left - 1)
    if name in _SAME_TURNS and given:
        return _of_turn(source, given[0], path, left - 1)
    return _made(source, _yielded(source, called_name(node)), path, left - 1)


def _yielded(source: Source, name: str) -> cst.BaseExpression:
    """What the generator ``name`` yields, or the ``__iter__`` of the class ``name``. Raises Refused where the
    file has several, or it yields in several places."""
    owners = [one for one in source.nodes(cst.ClassDef) if one.name.value == name]
    own = [one for owner in owners for one in source.nodes(cst.FunctionDef, within=owner)]
    functions = [*source.functions(name), *(one for one in own if one.name.value == "__iter__")]
    yields = [one for each in functions for one in source.nodes(cst.Yield, within=each)]
    value = yields[0].value if len(functions) == len(yields) == 1 else None
    if not isinstance(value, cst.BaseExpression):
        raise Refused(BY_HAND)
    return value


def _position(source: Source, target: cst.BaseExpression, name: cst.Name) -> _Path:
    """Where ``name`` stands in the tuples of ``target``. Raises Refused for `first, *rest`."""
    if target is name:
        return ()
    for at, element in enumerate(target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()):
        if isinstance(element, cst.StarredElement):
            break
        if source.inside(name, element):
            return (at, *_position(source, element.value, name))
    raise Refused(BY_HAND)


def _binds(source: Source, name: cst.Name) -> bool:
    """Whether a name gets another value there: `+=` changes the one that it has."""
    return source.binds(name) and not isinstance(source.parent(name), cst.AugAssign)


def _copied_into(source: Source, name: cst.Name, node: cst.Name) -> bool:
    """Whether ``name`` is given what is made of ``node``, as in ``x = x.to(device)``."""
    assign = source.enclosing(name, cst.Assign)
    return assign is not None and source.inside(node, assign)


def _escapes(source: Source, use: cst.Name, made: cst.Name, node: cst.Name) -> bool:
    """Whether something may write to the tensor after ``node`` hands it on: another name or object gets it,
    or it is changed there, or before it is made."""
    if _binds(source, use):
        return False
    if source.line(use) < source.line(made):
        return True
    above = source.parent(use)
    if isinstance(above, (cst.Assign, cst.Element, cst.DictElement, cst.StarredElement)) and use is not node:
        return True
    call = source.taking(use)
    if call is not None and called_name(call) in ("append", "put", "setattr") and use is not node:
        return True
    return source.line(use) > source.line(node) and changes(source, use)


def changes(source: Source, use: cst.Name | cst.Attribute) -> bool:
    """Whether a tensor is changed there."""
    inner: cst.CSTNode = use
    for above in source.ancestors(use):
        if isinstance(above, (cst.AssignTarget, cst.AugAssign)):
            return above.target is inner
        if isinstance(above, cst.Arg):
            return above.keyword is not None and above.keyword.value == "out"
        if isinstance(above, cst.Attribute) and above.attr.value.endswith("_"):
            return True
        if not isinstance(above, (cst.Attribute, cst.Subscript, cst.Call)):
            return False
        inner = above
    return False
