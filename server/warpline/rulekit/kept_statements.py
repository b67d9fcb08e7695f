"""What a statement keeps of a step: appended to a list, added to a sum, put into a dict."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.syntax.source import Source, called_name, is_method, receiver

KEEPS = ("append", "appendleft", "add", "insert", "extend", "setdefault", "put", "push")
CONTAINERS = ("list", "dict", "deque", "defaultdict", "OrderedDict", "set")
EMPTIES = ("clear", "pop", "popleft", "popitem")
#: Those that give no graph whatever is computed with them.
READ = ("detach", "item", "tolist", "numpy")
BACKWARD = ("backward", "manual_backward")
#: Calls a step from which on a line runs in each.
EACH_STEP = 0.5


def keeping_statements(
    context: Context,
) -> Iterator[tuple[Source, cst.SimpleStatementLine, cst.BaseSmallStatement]]:
    """The small statements of each step, but those that only call a function of the user's: a line in that
    keeps what it is given."""
    own = {cost.function.rpartition(".")[2] for cost in context.profile.lines if cost.calls >= EACH_STEP}
    for _, source, statement in context.each_step:
        for small in statement.body:
            call = small.value if isinstance(small, cst.Expr) else None
            if not isinstance(call, cst.Call) or called_name(call) not in own:
                yield source, statement, small


def uses_of(context: Context, keeper: str) -> list[tuple[Source, cst.Name]]:
    """Where the files name ``keeper``. Of an attribute, local names that are the same are others."""
    uses = [
        (source, name)
        for source in context.sources()
        for name in source.nodes(cst.Name)
        if name.value == keeper and not is_keyword(source, name)
    ]
    return [(source, name) for source, name in uses if not source.is_value(name)] or uses


def whole_name(source: Source, name: cst.Name) -> cst.Name | cst.Attribute:
    """``self.kept`` of its last name, which is what stands there; else the name itself."""
    above = source.parent(name)
    return above if isinstance(above, cst.Attribute) and above.attr is name else name


def given_to(source: Source, target: cst.AssignTarget | cst.AnnAssign) -> cst.BaseExpression | None:
    """What an assignment gives its target."""
    assign = source.parent(target) if isinstance(target, cst.AssignTarget) else target
    return assign.value if isinstance(assign, (cst.Assign, cst.AnnAssign)) else None


def is_keyword(source: Source, name: cst.Name) -> bool:
    """Whether it is the ``dim`` of ``f(dim=0)``."""
    above = source.parent(name)
    return isinstance(above, cst.Arg) and above.keyword is name


def names_read(
    source: Source, node: cst.CSTNode, *, without: Collection[cst.CSTNode] = (), parted: bool = True
) -> set[str]:
    """Last names of all that ``node`` reads but what is ``without``; ``parted``: also of what it parts from
    its graph."""
    others = {*without, *(one.target for one in source.nodes(cst.AssignTarget, within=node))}
    return {
        name.value
        for name in source.nodes(cst.Name, within=node)
        if whole_name(source, name) not in others and not is_keyword(source, name)
        if parted or not _is_parted(source, name)
    }


def _is_parted(source: Source, name: cst.Name) -> bool:
    """Whether it is the last name of what ``detach`` or the like is called on."""
    method = source.parent(whole_name(source, name))
    return isinstance(method, cst.Attribute) and is_method(source.parent(method), *READ)


def last_name(node: cst.CSTNode | None) -> str:
    """``seen`` of ``self.seen[0]`` and of ``self.seen.setdefault(name, [])``."""
    while isinstance(node, (cst.Subscript, cst.Call)):
        inner = node.func if isinstance(node, cst.Call) else node
        if not isinstance(inner, (cst.Attribute, cst.Subscript)):
            return ""
        node = inner.value
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")


def kept_by(
    source: Source, small: cst.BaseSmallStatement, *, sums: bool
) -> list[tuple[str, cst.BaseExpression]]:
    """The last name of what keeps something, and what it keeps."""
    if isinstance(small, cst.Expr):
        held = receiver(small.value) if is_method(small.value, *KEEPS) else None
        if isinstance(small.value, cst.Call) and held is not None:
            keeper = last_name(_meant(source, held))
            return [(keeper, part) for arg in small.value.args for part in parts_of(arg.value)]
    elif isinstance(small, cst.AugAssign):
        if sums and isinstance(small.operator, cst.AddAssign):
            plain = isinstance(small.value, (cst.Name, cst.Call, cst.Tuple, cst.List, cst.Dict))
            if plain or _outlives(source, small.target):
                return [(last_name(small.target), part) for part in parts_of(small.value)]
    elif isinstance(small, cst.Assign):
        found = [
            (last_name(target.target), part)
            for target in small.targets
            if isinstance(target.target, cst.Subscript)
            for part in parts_of(small.value)
        ]
        return [*found, *added_by(source, small)] if sums else found
    return []


def _meant(source: Source, node: cst.BaseExpression) -> cst.BaseExpression:
    """``self.frames[name]`` for the ``seen`` of ``seen = self.frames[name]``; else the node itself."""
    function = source.enclosing(node, cst.FunctionDef)
    given = source.assigned(node.value, function) if isinstance(node, cst.Name) else []
    entry = len(given) == 1 and (isinstance(given[0], cst.Subscript) or is_method(given[0], "setdefault"))
    return given[0] if entry else node


def added_by(source: Source, small: cst.Assign) -> Iterator[tuple[str, cst.BaseExpression]]:
    """What a running sum or mean gets of a step: ``x`` in ``self.sum = self.sum + x``, and all of
    ``mean = 0.9 * mean + 0.1 * x``: the old value has a graph as well."""
    value = small.value
    for target in (item.target for item in small.targets if _outlives(source, item.target)):
        kept = source.code(target)
        sides = [value.left, value.right] if isinstance(value, cst.BinaryOperation) else []
        added = [side for side in sides if source.code(side) != kept]
        if (
            isinstance(value, cst.BinaryOperation)
            and isinstance(value.operator, cst.Add)
            and len(added) == 1
            and isinstance(added[0], (cst.Name, cst.Call, cst.Tuple, cst.List))
        ):
            yield from ((last_name(target), part) for part in parts_of(added[0]))
        elif any(source.code(node) == kept for node in source.nodes(type(target), within=value)):
            yield last_name(target), value


def _outlives(source: Source, target: cst.BaseExpression) -> bool:
    """Whether what is assigned there outlives the step: it is an object's, or a name in the loop that has the
    backward pass."""
    if not isinstance(target, cst.Name):
        return isinstance(target, (cst.Attribute, cst.Subscript))
    return any(
        is_method(call, *BACKWARD)
        for loop in source.loops(target)[:1]
        for call in source.nodes(cst.Call, within=loop)
    )


def parts_of(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The elements of a tuple, list or dict, and of those in it; else the value itself."""
    if isinstance(value, (cst.Tuple, cst.List, cst.Dict)):
        yield from (part for element in value.elements for part in parts_of(element.value))
    else:
        yield value
