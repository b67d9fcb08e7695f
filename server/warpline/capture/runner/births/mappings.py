"""Where the entry of a mapping was written: in its display, or by the last assignment or update."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from .peek import UNKNOWN
from .scopes import Scope, binds
from .syntax import FUNCTIONS, dotted, literal

if TYPE_CHECKING:
    from .follow import Follow

Found = Dict[str, Any]
#: Calls that copy the entries of their argument.
_VIEWS = frozenset({
    "asdict", "vars", "dict", "copy", "deepcopy", "_asdict", "model_dump", "to_dict", "to_container", "dict_",
    "OrderedDict", "SimpleNamespace", "Namespace", "EasyDict", "AttrDict", "DotDict", "MappingProxyType",
    "create", "as_dict", "__dict__", "ConfigDict", "Munch", "Box", "merge", "items",
})  # fmt: skip


class Mappings:
    def __init__(self, follow: Follow) -> None:
        self.follow = follow

    def entry(
        self, node: ast.AST, key: str, scope: Scope, value: Any, depth: int, strict: bool = False
    ) -> Optional[Found]:
        """Where ``key`` of the mapping that ``node`` stands for was given ``value``.

        ``strict``: the mapping may lack the key; then it is not looked for elsewhere."""
        if depth <= 0:
            return None
        found = self._flow(node, key, scope, value, depth)
        if found is not None:
            return found
        thing = scope.value(node)
        if isinstance(thing, dict) and strict and key not in thing:
            return None
        if thing is UNKNOWN and strict and not self._may_have(node, scope):
            return None
        return self.follow.objects.anywhere(key, value, thing if thing is not UNKNOWN else None)

    def _may_have(self, node: ast.AST, scope: Scope) -> bool:
        """Whether an expression may have had any entry, if its object is gone."""
        return not isinstance(node, ast.Dict) or any(one is None for one in node.keys)

    def _flow(self, node: ast.AST, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        if isinstance(node, ast.Dict):
            return self._display(node, key, scope, value, depth)
        if isinstance(node, ast.Name):
            return self._named(node.id, key, scope, value, depth)
        if isinstance(node, ast.Call):
            return self._made(node, key, scope, value, depth)
        several: List[ast.AST] = []
        if isinstance(node, ast.IfExp):
            several = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            several = list(node.values)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            several = [node.right, node.left]
        elif isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return self._member(node.value, key, scope, value, depth)
        elif isinstance(node, ast.Attribute):
            for expression, there in self.follow.objects.assigned_to(node, scope):
                found = self._flow(expression, key, there, value, depth - 1)
                if found is not None:
                    return found
        for inner in several:
            found = self._flow(inner, key, scope, value, depth - 1)
            if found is not None:
                return found
        return None

    def _display(self, node: ast.Dict, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        for name, inner in zip(reversed(node.keys), reversed(node.values)):
            if name is None:
                found = self.entry(inner, key, scope, value, depth - 1, strict=True)
                if found is not None:
                    return found
            elif literal(name) == (True, key):
                return self._written(inner, key, scope, value, depth)
        return None

    def _written(self, node: ast.AST, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        found = self.follow.origin(node, scope, value, depth - 1, "entry")
        return {**found, "name": found["name"] or key} if found is not None else None

    def _made(self, node: ast.Call, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        last = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        if last in _VIEWS:
            for keyword in reversed(node.keywords):
                if keyword.arg == key:
                    return self._written(keyword.value, key, scope, value, depth)
                if keyword.arg is None:
                    found = self.entry(keyword.value, key, scope, value, depth - 1, strict=True)
                    if found is not None:
                        return found
            inner = [*reversed(node.args)]
            if isinstance(node.func, ast.Attribute) and not node.args:
                inner = [node.func.value]
            for one in inner:
                found = self._member(one, key, scope, value, depth)
                if found is not None:
                    return found
            return None
        function = self.follow.scopes.function(scope, node.func)
        for expression, there in self.follow.returns(*function) if function is not None else ():
            found = self._flow(expression, key, there, value, depth - 1)
            if found is not None:
                return found
        return None

    def _member(self, node: ast.AST, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        """The attribute or the entry ``key``, whichever ``node`` has."""
        thing = scope.value(node)
        if thing is UNKNOWN or isinstance(thing, dict):
            found = self._flow(node, key, scope, value, depth - 1)
            if found is not None or isinstance(thing, dict):
                return found
        if thing is UNKNOWN:
            return None
        return self.follow.objects.attribute(thing, node, key, scope, value, depth - 1)

    def _named(self, name: str, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        """The last write to ``name[key]`` that ran, in the function or module that owns the name."""
        node = scope.node
        while isinstance(node, FUNCTIONS) and not binds(node, name):
            node = scope.file.function_scope(node)
        owner = scope if node is scope.node else scope._replace(node=node, frame=None)
        for there, kind, expression in self._writes(name, key, owner):
            if kind == "set":
                found = self._written(expression, key, there, value, depth)
            elif kind == "into":
                found = self.entry(expression, key, there, value, depth - 1, strict=True)
            else:
                found = self._flow(expression, key, there, value, depth - 1)
            if found is not None:
                return found
        if isinstance(owner.node, FUNCTIONS):
            return self._parameter(name, key, owner, value, depth)
        return self._imported(name, key, owner, value, depth)

    def _parameter(self, name: str, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        parameters = self.follow.parameters
        extra = scope.node.args.kwarg
        if extra is not None and extra.arg == name:
            return parameters.extra(name, key, scope, value, depth - 1)
        for expression, caller in parameters.given(name, scope):
            found = self._flow(expression, key, caller, value, depth - 1)
            if found is not None:
                return found
        return None

    def _imported(self, name: str, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        for kind, node in self.follow.bindings(name, scope):
            module = self.follow.scopes.imported(scope, node) if kind == "import" else None
            there = self.follow.scopes.of_module(module) if module is not None else None
            if there is not None:
                alias = next((one.name for one in node.names if (one.asname or one.name) == name), name)
                return self._named(alias, key, there, value, depth - 1)
        return None

    def _writes(self, name: str, key: str, scope: Scope) -> Iterator[Tuple[Scope, str, ast.AST]]:
        """``"set"``: an expression given to the key; ``"into"``: a mapping put into it; ``"made"``: the
        mapping as a whole. What ran last comes first."""
        file, when = scope.file, self.follow.scopes.when
        places = [(scope, file.within(scope.node))]
        if scope.node is file.tree:  # functions change a module's dict, too
            for function in file.functions:
                if not binds(function, name):
                    places.append((scope._replace(node=function, frame=None), file.within(function)))
        found = []
        for there, nodes in places:
            for order, node in enumerate(nodes):
                for kind, expression in _write(node, name, key):
                    ran = when(file, node)
                    if ran is not None:
                        found.append((ran, order, there, kind, expression))
        found.sort(key=lambda entry: entry[:2], reverse=True)
        for _, _, there, kind, expression in found:
            yield there, kind, expression


def _write(node: ast.AST, name: str, key: str) -> Iterator[Tuple[str, ast.AST]]:  # noqa: C901
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield "made", node.value
            elif isinstance(target, ast.Subscript) and _is(target.value, name) and subscript(target) == key:
                yield "set", node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        if _is(node.target, name) and node.value is not None:
            yield "made", node.value
    elif isinstance(node, ast.AugAssign):
        if _is(node.target, name):
            yield "into", node.value
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        if _is(node.target, name) and isinstance(node.iter, (ast.Tuple, ast.List)):
            yield from (("made", item) for item in node.iter.elts)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
        if node.func.attr == "update":
            for argument in node.args:
                yield "into", argument
            for keyword in node.keywords:
                if keyword.arg == key:
                    yield "set", keyword.value
                elif keyword.arg is None:
                    yield "into", keyword.value
        elif node.func.attr == "setdefault" and len(node.args) == 2 and _constant(node.args[0], key):
            yield "set", node.args[1]


def subscript(node: ast.Subscript) -> Any:
    """The constant in the brackets, else None."""
    index: Any = node.slice
    if type(index).__name__ == "Index":  # Python 3.8's trees
        index = index.value
    return literal(index)[1]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _constant(node: ast.AST, key: str) -> bool:
    return literal(node) == (True, key)
