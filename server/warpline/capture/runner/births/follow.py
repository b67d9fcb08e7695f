"""From a call's expression to the line that holds its value.

The expression is followed through assignments that ran, parameters (in the frames of running callers), dicts,
objects and files. A literal is accepted only if it is the value that the call received. Otherwise an earlier
assignment is tried; if none fits, there is no result.
"""

from __future__ import annotations

import ast
import sys
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .loaded import Loaded
from .mappings import Mappings
from .objects import Objects
from .parameters import Parameters
from .peek import Unknown
from .scopes import Scope, Scopes, binds
from .syntax import FUNCTIONS, dotted, literal, same

#: ``kind``, ``file``, ``line``, ``name``, ``by`` of ``wire.births.Holder``.
Found = Dict[str, Any]
DEPTH = 14
_CONVERSIONS = frozenset({"int", "float", "str", "bool", "tuple", "list", "max", "min", "round", "abs"})


class Follow:
    def __init__(self, scopes: Scopes, loaded: Loaded) -> None:
        self.scopes = scopes
        self.loaded = loaded
        self.parameters = Parameters(self)
        self.mappings = Mappings(self)
        self.objects = Objects(self)

    def found(self, kind: str, scope: Scope, node: ast.AST, name: str = "", by: str = "flow") -> Found:
        """Where a value was found: the ``kind`` of place, with its line (from 1) and column."""
        line, column = scope.file.place_of(node)
        found = {"kind": kind, "file": scope.file.path, "line": line, "name": name, "by": by}
        return {**found, "column": column}

    def origin(
        self, node: Optional[ast.AST], scope: Scope, value: Any, depth: int = DEPTH, kind: str = "call"
    ) -> Optional[Found]:
        """Where ``value``, the result of the expression ``node``, is written; None if not found. ``kind``:
        the kind of place that holds ``node``, in case ``node`` is the literal itself."""
        if node is None or depth <= 0:
            return None
        constant, written = literal(node)
        if constant:
            return self.found(kind, scope, node) if same(value, written) else None
        if isinstance(node, ast.Name):
            return self._name(node.id, scope, value, depth - 1)
        if isinstance(node, ast.Attribute):
            if self._is_constant(node, scope, value):
                return self.found(kind, scope, node)
            return self._attribute(node, scope, value, depth - 1)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, scope, value, depth - 1)
        if isinstance(node, ast.Call):
            return self._call(node, scope, value, depth - 1)
        several: List[ast.AST] = []
        if isinstance(node, ast.IfExp):
            several = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            several = list(node.values)
        elif isinstance(node, ast.NamedExpr):
            several = [node.value]
        for inner in several:
            answer = self.origin(inner, scope, value, depth - 1, kind if kind != "call" else "variable")
            if answer is not None:
                return answer
        return None if several else self.found("computed", scope, node, by="flow")

    def _is_constant(self, node: ast.Attribute, scope: Scope, value: Any) -> bool:
        """Whether it is a library's name for ``value``, such as ``torch.bfloat16``: as good as a literal."""
        owner = scope.value(node.value)
        if not isinstance(owner, ModuleType) or self.scopes.of_module(owner) is not None:
            return False
        return vars(owner).get(node.attr) is value and value is not None

    def _name(self, name: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        node = scope.node
        while isinstance(node, FUNCTIONS):
            if binds(node, name):
                here = scope if node is scope.node else scope._replace(node=node, frame=None)
                return self._bound(name, here, value, depth)
            node = scope.file.function_scope(node)
        return self._bound(name, scope._replace(node=scope.file.tree, frame=None), value, depth)

    def _bound(self, name: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        """The last assignment to ``name`` that ran."""
        for kind, node in self.bindings(name, scope):
            answer = None
            if kind == "value":
                answer = self.origin(node, scope, value, depth, "variable")
            elif kind == "import":
                answer = self._imported(name, scope, node, value, depth)
            elif kind == "change":
                answer = self.found("computed", scope, node, name)
            if answer is not None:
                return {**answer, "name": answer["name"] or name}
        if scope.node is not scope.file.tree:
            return self.parameters.value(name, scope, value, depth)
        return self._on_command_line(name, scope, value)

    def _on_command_line(self, name: str, scope: Scope, value: Any) -> Optional[Found]:
        """A word ``--name=value`` that the script itself turns into a global variable."""
        for word in sys.argv[1:]:
            option, equals, written = word.partition("=")
            if equals and option.lstrip("-") == name and same(value, written):
                node = next((node for _, node in self.bindings(name, scope)), scope.file.tree)
                return self.found("command line", scope, node, option, by="value")
        return None

    def bindings(self, name: str, scope: Scope) -> Iterator[Tuple[str, Any]]:
        """``("value", expression)``, ``("change", statement)`` or ``("import", statement)`` for each
        statement of the scope that gave ``name`` a value; the last that ran comes first."""
        found = []
        for order, node in enumerate(scope.file.within(scope.node)):
            for kind, what in _bindings(node, name):
                when = self.scopes.when(scope.file, node)
                if when is not None:
                    found.append((when, order, kind, what))
        for _, _, kind, what in sorted(found, key=lambda entry: entry[:2], reverse=True):
            yield kind, what

    def _imported(self, name: str, scope: Scope, node: Any, value: Any, depth: int) -> Optional[Found]:
        if not isinstance(node, ast.ImportFrom):
            return None
        module = self.scopes.imported(scope, node)
        there = self.scopes.of_module(module) if module is not None else None
        alias = next((one for one in node.names if (one.asname or one.name) in (name, "*")), None)
        if there is None or alias is None or (alias.name == "*" and name not in there.globals):
            return None
        return self._bound(name if alias.name == "*" else alias.name, there, value, depth)

    def _attribute(self, node: ast.Attribute, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        thing = scope.value(node.value)
        there = self.scopes.of_module(thing) if isinstance(thing, ModuleType) else None
        if there is not None:
            return self._bound(node.attr, there, value, depth)
        return self.objects.attribute(thing, node.value, node.attr, scope, value, depth)

    def _subscript(self, node: ast.Subscript, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        index: Any = getattr(node.slice, "value", node.slice) if _is_index(node.slice) else node.slice
        key = scope.value(index)
        if dotted(node.value).endswith("environ"):
            return self.found("environment", scope, node, str(key))
        if not isinstance(key, str):
            return self.found("computed", scope, node)
        return self.mappings.entry(node.value, key, scope, value, depth)

    def _call(self, node: ast.Call, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        """A call: a lookup with a default, getattr, or a user's function."""
        name = dotted(node.func)
        last = name.rpartition(".")[2]
        if last in ("get", "getenv", "pop", "setdefault") and node.args:
            return self._get(node, name, scope, value, depth)
        if last == "getattr" and len(node.args) >= 2:
            wanted = scope.value(node.args[1])
            if isinstance(wanted, str):
                as_written = ast.copy_location(ast.Attribute(node.args[0], wanted, ast.Load()), node)
                default = node.args[2] if len(node.args) > 2 else None
                found = self._attribute(as_written, scope, value, depth)
                return found or self.origin(default, scope, value, depth, "default")
        if name in _CONVERSIONS:
            for argument in node.args:
                answer = self.origin(argument, scope, value, depth, "variable")
                if answer is not None and answer["kind"] != "computed":
                    return answer
            return self.found("computed", scope, node)
        key = scope.value(node.args[-1]) if node.args else None
        if isinstance(key, str) and isinstance(node.func, ast.Attribute):
            read = self.loaded.places(key, value, None)  # ``config.getint("data", "workers")``
            if read:
                _, path, line, _ = max(read)
                return {"kind": "file", "file": path, "line": line, "column": -1, "name": key, "by": "value"}
        returned = self.scopes.function(scope, node.func)
        if returned is not None:
            for expression, inner in self.returns(*returned):
                answer = self.origin(expression, inner, value, depth, "variable")
                if answer is not None:
                    return answer
        return self.found("computed", scope, node)

    def returns(self, file: Any, function: Any) -> Iterator[Tuple[ast.AST, Scope]]:
        """What a function returned, by its ``return`` statements that ran, the last first."""
        inside = file.within(function)
        scope = self.scopes.of_node(file, inside[0])._replace(node=function) if inside else None
        found = [
            (when, node)
            for node in inside
            if isinstance(node, ast.Return) and (when := self.scopes.when(file, node)) is not None
        ]
        for _, node in sorted(found, key=lambda entry: entry[0], reverse=True):
            if node.value is not None and scope is not None:
                yield node.value, scope

    def _get(self, node: ast.Call, name: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        import os

        key = scope.value(node.args[0])
        default = node.args[1] if len(node.args) > 1 else None
        if name.endswith("getenv") or "environ" in name:
            if isinstance(key, str) and key in os.environ:
                return self.found("environment", scope, node, key)
            return self.origin(default, scope, value, depth, "default")
        if isinstance(key, str) and isinstance(node.func, ast.Attribute):
            found = self.mappings.entry(node.func.value, key, scope, value, depth)
            return found or self.origin(default, scope, value, depth, "default")
        return self.found("computed", scope, node)


def _is_index(node: Any) -> bool:
    return type(node).__name__ == "Index"  # Python 3.8's trees


def _bindings(node: ast.AST, name: str) -> Iterator[Tuple[str, Any]]:
    """How a statement binds ``name``: the kind of binding, and the expression."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _to(target, node.value, name, node)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        if node.value is not None:
            yield from _to(node.target, node.value, name, node)
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name) and node.target.id == name:
            yield "change", node
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        items = node.iter.elts if isinstance(node.iter, (ast.Tuple, ast.List)) else []
        if isinstance(node.target, ast.Name) and node.target.id == name:
            yield from (("value", item) for item in items)
    elif isinstance(node, ast.ImportFrom) and any(
        (one.asname or one.name) in (name, "*") for one in node.names
    ):
        yield "import", node


def _to(target: ast.AST, value: ast.AST, name: str, node: ast.AST) -> Iterator[Tuple[str, Any]]:
    if isinstance(target, ast.Name) and target.id == name:
        yield "value", value
    elif isinstance(target, (ast.Tuple, ast.List)):
        values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        for at, inner in enumerate(target.elts):
            if isinstance(inner, ast.Name) and inner.id == name:
                if len(values) == len(target.elts):
                    yield "value", values[at]
                else:
                    yield "change", node


def known(value: Any) -> bool:
    """Whether a value could be read."""
    return not isinstance(value, Unknown)
