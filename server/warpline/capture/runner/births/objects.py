"""Finds where an object's attribute was written: an option, a field, an assignment, a file; else by value."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from .loaded import Defaults, Option, members
from .mappings import subscript
from .peek import UNKNOWN, own_attributes
from .scopes import Scope
from .syntax import FUNCTIONS, File, dotted, literal, same
from .written import in_texts, line_of_text

if TYPE_CHECKING:
    from .follow import Follow

Found = Dict[str, Any]


class Objects:
    def __init__(self, follow: Follow) -> None:
        self.follow = follow

    def attribute(
        self, thing: Any, node: Optional[ast.AST], name: str, scope: Scope, value: Any, depth: int
    ) -> Optional[Found]:
        """Where ``thing.name`` was given ``value``; ``node`` is the expression of ``thing``."""
        if depth <= 0:
            return None
        if thing is UNKNOWN:
            return self._self(node, name, scope, value, depth) or self.anywhere(name, value, None)
        if isinstance(thing, dict):
            return self.anywhere(name, value, thing)
        if isinstance(thing, type):
            return self._of_class(thing, name, value, depth)
        written = dotted(node).rpartition(".")[2] if node is not None else ""
        if name in own_attributes(thing) or hasattr(type(thing), "__slots__"):
            for found in self._given(thing, written, name, value, depth):
                return found
        kinds = [one.__name__ for one in type(thing).__mro__]
        if "Namespace" in kinds:
            found_option = self.option(name, value, depth)
            if found_option is not None:
                return found_option
        return self._of_class(type(thing), name, value, depth) or self.anywhere(name, value, thing)

    def option(self, name: str, value: Any, depth: int) -> Optional[Found]:
        """The option of the command line that gives ``name`` the ``value``."""
        for option, word in self.follow.loaded.option(name, value):
            if word is not None:
                return {
                    "kind": "command line", "file": option.file, "line": option.line, "name": word,
                    "by": "identity",
                }  # fmt: skip
            return self._default(option, value, depth)
        return None

    def _default(self, option: Option, value: Any, depth: int) -> Optional[Found]:
        name = max(option.action.option_strings or [option.action.dest], key=len)
        found: Found = {
            "kind": "option", "file": option.file, "line": option.line, "name": name, "by": "identity",
        }  # fmt: skip
        file = self.follow.scopes.files[option.file]
        if file is None:
            return found
        for call in file.calls:
            if call.lineno <= option.line <= (call.end_lineno or 0) and any(
                literal(one)[1] in option.action.option_strings for one in call.args
            ):
                default = _keyword(call, "default")
                later = self.follow.loaded.set_default(option, default is not None)
                if later is not None:
                    return self._set_default(later, option, found, value, depth)
                if default is None:
                    return {**found, "line": call.lineno}
                return self._written(default, call, file, found, value, depth)
        return found

    def _set_default(
        self, later: Defaults, option: Option, found: Found, value: Any, depth: int
    ) -> Optional[Found]:
        """The same of what ``set_defaults`` gave the option."""
        file = self.follow.scopes.files[later.file]
        if file is None:
            return None
        for call in file.calls:
            given = _keyword(call, option.action.dest)
            here = call.lineno <= later.line <= (call.end_lineno or 0)
            if here and given is not None and dotted(call.func).endswith("set_defaults"):
                return self._written(given, call, file, {**found, "file": later.file}, value, depth)
        return None

    def _written(
        self, given: ast.expr, call: ast.Call, file: File, found: Found, value: Any, depth: int
    ) -> Optional[Found]:
        """Where the default ``given`` in a call is written: in the call, if a literal, or its origin."""
        if literal(given)[0]:
            line, column = file.place_of(given)
            return {**found, "line": line, "column": column} if same(value, literal(given)[1]) else None
        there = self.follow.scopes.of_node(file, call)
        return self.follow.origin(given, there, value, depth - 1) or {**found, "line": call.lineno}

    def _self(
        self, node: Optional[ast.AST], name: str, scope: Scope, value: Any, depth: int
    ) -> Optional[Found]:
        """``self.name`` in a method that has ended."""
        if not isinstance(node, ast.Name) or node.id not in ("self", "cls"):
            return None
        owner = scope.file.scope_of(scope.node) if scope.node is not scope.file.tree else None
        if not isinstance(owner, ast.ClassDef):
            return None
        for _, there, expression in sorted(self._assigned(scope.file, owner, name), key=_first, reverse=True):
            found = self.follow.origin(expression, there, value, depth - 1, "field")
            if found is not None:
                return found
        return None

    def assigned_to(self, node: ast.Attribute, scope: Scope) -> Iterator[Tuple[ast.AST, Scope]]:
        """What the methods of its class assign to the attribute ``node``, the last first."""
        thing = scope.value(node.value)
        places = [self.class_of(kind) for kind in type(thing).__mro__] if thing is not UNKNOWN else []
        owner = scope.file.scope_of(scope.node) if scope.node is not scope.file.tree else None
        if thing is UNKNOWN and isinstance(owner, ast.ClassDef) and dotted(node.value) == "self":
            places = [(scope.file, owner)]
        for place in places:
            if place is not None:
                found = self._assigned(*place, node.attr)
                yield from ((one, there) for _, there, one in sorted(found, key=_first, reverse=True))

    def _given(self, thing: Any, written: str, name: str, value: Any, depth: int) -> Iterator[Found]:
        """What gave this object the attribute, the last first: an assignment from outside, one in its
        methods, the call that made it."""
        scopes, parameters = self.follow.scopes, self.follow.parameters
        found: List[Tuple[int, str, Scope, Any]] = []
        for file in scopes.all_files():
            for node in ast.walk(file.tree):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        if isinstance(target, ast.Attribute) and target.attr == name:
                            base = dotted(target.value).rpartition(".")[2]
                            when = scopes.when(file, node) if base == written and base != "self" else None
                            if when is not None:
                                found.append((when, "set", scopes.of_node(file, node), node.value))
        for kind in type(thing).__mro__:
            place = self.class_of(kind)
            if place is not None:
                found += [(when, "set", there, node) for when, there, node in self._assigned(*place, name)]
        if "__dataclass_fields__" in vars(type(thing)) or type(thing).__name__ == "SimpleNamespace":
            names = list(getattr(type(thing), "__dataclass_fields__", {}))
            position = names.index(name) if name in names else None
            for made in (type(thing).__name__, "replace"):
                for call, caller in parameters.calls_of(made):
                    when = scopes.when(caller.file, call)
                    found.append((when or 0, "made", caller, (call, position if made != "replace" else None)))
        for _, how, there, node in sorted(found, key=_first, reverse=True):
            if how == "set":
                answer = self.follow.origin(node, there, value, depth - 1, "field")
            else:
                answer = parameters.passed(node[0], there, name, node[1], value, depth - 1)[1]
            if answer is not None:
                yield {**answer, "name": answer["name"] or name}

    def _assigned(self, file: File, owner: ast.ClassDef, name: str) -> List[Tuple[int, Scope, ast.AST]]:
        """``self.name = …`` in the methods of a class."""
        scopes = self.follow.scopes
        found: List[Tuple[int, Scope, ast.AST]] = []
        for node in ast.walk(owner):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            for target, given in _pairs(targets, node.value):
                if isinstance(target, ast.Attribute) and dotted(target) == "self." + name:
                    when = scopes.when(file, node)
                    if when is not None:
                        found.append((when, scopes.of_node(file, node), given))
        return found

    def class_of(self, kind: type) -> Optional[Tuple[File, ast.ClassDef]]:
        """The file and the syntax of a class of the user's."""
        scopes = self.follow.scopes
        import sys

        module = sys.modules.get(kind.__module__)
        path = scopes.user_files[getattr(module, "__file__", None) or "<none>"]
        file = scopes.files[path] if path is not None else None
        node = file.class_named(kind.__qualname__) if file is not None else None
        return (file, node) if file is not None and node is not None else None

    def _of_class(self, kind: type, name: str, value: Any, depth: int) -> Optional[Found]:
        """The class body's entry, or what its property returned, in the first class that has one."""
        for one in inspect.getmro(kind):
            place = self.class_of(one)
            if place is None:
                continue
            file, node = place
            for statement in reversed(node.body):
                if isinstance(statement, FUNCTIONS) and statement.name == name:  # a property
                    for returned, inside in self.follow.returns(file, statement):
                        answer = self.follow.origin(returned, inside, value, depth - 1, "field")
                        return {**answer, "name": answer["name"] or name} if answer is not None else None
                targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    there = self.follow.scopes.of_node(file, node)
                    expression: Any = getattr(statement, "value", None)
                    if isinstance(expression, ast.Call) and dotted(expression.func).endswith(
                        ("field", "Field")
                    ):
                        given = {word.arg: word.value for word in expression.keywords}
                        expression = given.get("default", expression.args[0] if expression.args else None)
                    found = self.follow.origin(expression, there, value, depth - 1, "field")
                    return {**found, "name": found["name"] or name} if found is not None else None
        return None

    def anywhere(self, name: str, value: Any, holder: Any) -> Optional[Found]:
        """The entry, keyword, field or line of a file with this name and this literal, if it ran. Of several,
        the one whose neighbours are most like those in ``holder``, then the one that ran last."""
        scopes = self.follow.scopes
        found: List[Tuple[int, int, str, str, int, int]] = []
        for file in scopes.all_files():
            for node in ast.walk(file.tree):
                for kind, expression, likeness in _entries(node, name, holder):
                    written = [one for one in _either(expression) if same(value, literal(one)[1])]
                    when = scopes.when(file, node) if len(written) == 1 else None
                    if when is not None:
                        found.append((likeness, when, kind, file.path, *file.place_of(written[0])))
        found += in_texts(scopes, name, value, holder)
        same_object = False
        for likeness, path, line, identical in self.follow.loaded.places(name, value, holder, self._literal):
            same_object = same_object or identical
            found.append((likeness, 0, "file", path, line, -1))
        if not found:
            return self.option(name, value, 3)
        _, _, kind, path, line, column = max(found, key=lambda entry: entry[:2])
        by = "identity" if same_object and kind == "file" else "value"
        return {"kind": kind, "file": path, "line": line, "column": column, "name": name, "by": by}

    def _literal(self, text: str) -> Optional[Tuple[str, int]]:
        return line_of_text(self.follow.scopes, text)


def _keyword(call: ast.Call, name: str) -> Optional[ast.expr]:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _first(entry: Any) -> Any:
    return entry[0]


def _entries(node: ast.AST, name: str, holder: Any) -> Iterator[Tuple[str, Any, int]]:
    """Expressions that ``node`` gives the key or attribute ``name``, with how much beside them is as in
    ``holder``."""
    if isinstance(node, ast.Dict):
        plain = {literal(key)[1]: inner for key, inner in zip(node.keys, node.values) if key is not None}
        if name in plain:
            yield "entry", plain[name], _likeness(plain, holder)
    elif isinstance(node, ast.Call):
        given = {word.arg: word.value for word in node.keywords if word.arg is not None}
        if name in given:
            yield "entry", given[name], _likeness(given, holder)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == name:
                yield "field", node.value, 0
            elif isinstance(target, ast.Subscript) and subscript(target) == name:
                yield "entry", node.value, 0
    elif isinstance(node, ast.ClassDef):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and dotted(statement.target) == name and statement.value:
                yield "field", statement.value, 0
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        every = [*node.args.args, *node.args.kwonlyargs]
        defaults = [*([None] * (len(node.args.args) - len(node.args.defaults))), *node.args.defaults]
        for one, default in zip(every, [*defaults, *node.args.kw_defaults]):
            if one.arg == name and default is not None:
                yield "default", default, -1


def _either(expression: Any) -> List[Any]:
    """The literal that an expression is, or those of ``4 if quick else 64``."""
    several = isinstance(expression, ast.IfExp)
    parts = [expression.body, expression.orelse] if several else [expression]
    return [one for one in parts if literal(one)[0]]


def _likeness(entries: Dict[Any, Any], holder: Any) -> int:
    present = members(holder) if holder is not None else {}
    score = 0
    for key, node in entries.items():
        constant, written = literal(node)
        if constant and key in present:
            score += 1 if same(present[key], written) else -1
    return score


def _pairs(targets: Any, value: Any) -> Iterator[Tuple[Any, Any]]:
    """Each target of an assignment with what it gets, ``a, b = c, d`` taken apart."""
    for target in targets:
        both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        if both and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts)
        else:
            yield target, value
