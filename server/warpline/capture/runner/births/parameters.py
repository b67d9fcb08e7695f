"""Finds where a parameter of a user function got its value: in the call, else in its default."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from .scopes import Scope
from .syntax import dotted, literal, same

if TYPE_CHECKING:
    from .follow import Follow

Found = Dict[str, Any]


class Parameters:
    def __init__(self, follow: Follow) -> None:
        self.follow = follow

    def value(self, name: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        """Where the parameter ``name`` of the function ``scope`` got its value."""
        arguments = scope.node.args
        names = [one.arg for one in (*getattr(arguments, "posonlyargs", ()), *arguments.args)]
        if name not in names and all(one.arg != name for one in arguments.kwonlyargs):
            return None
        position = names.index(name) - _bound_first(scope) if name in names else None
        for call, caller in self._calls(scope):
            passed, answer = self.passed(call, caller, name, position, value, depth)
            if answer is not None:
                return answer
            if passed and scope.frame is not None:
                return None
        return self._option(name, scope, value) or self._default(name, scope, value, depth)

    def passed(
        self, call: ast.Call, caller: Scope, name: str, position: Optional[int], value: Any, depth: int
    ) -> Tuple[bool, Optional[Found]]:
        """Whether ``call`` passes the parameter, and where its value is written."""
        follow = self.follow
        for keyword in call.keywords:
            if keyword.arg == name:
                return True, follow.origin(keyword.value, caller, value, depth - 1)
        plain = call.args
        there = position is not None and 0 <= position < len(plain)
        if there and not any(isinstance(one, ast.Starred) for one in plain[: (position or 0) + 1]):
            return True, follow.origin(plain[position or 0], caller, value, depth - 1)
        for keyword in reversed(call.keywords):
            if keyword.arg is None:
                answer = follow.mappings.entry(keyword.value, name, caller, value, depth - 1, strict=True)
                if answer is not None:
                    return True, answer
        made = caller.value(call.func)
        if isinstance(made, functools.partial):
            for kind, node in follow.bindings(dotted(call.func), caller._replace(node=caller.file.tree)):
                if kind == "value" and isinstance(node, ast.Call) and dotted(node.func).endswith("partial"):
                    shifted = position + 1 if position is not None else None
                    return self.passed(node, caller, name, shifted, value, depth - 1)
            if name in made.keywords:
                return True, follow.objects.anywhere(name, value, made.keywords)
        return any(_may_have(caller.value(one.value), name) for one in call.keywords if one.arg is None), None

    def extra(self, name: str, key: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        """Where ``key`` of a function's ``**name`` comes from."""
        for call, caller in self._calls(scope):
            answer = self.passed(call, caller, key, None, value, depth - 1)[1]
            if answer is not None:
                return answer
        return None

    def given(self, name: str, scope: Scope) -> Iterator[Tuple[ast.AST, Scope]]:
        """The expressions that calls pass for the parameter ``name``."""
        arguments = scope.node.args
        names = [one.arg for one in (*getattr(arguments, "posonlyargs", ()), *arguments.args)]
        position = names.index(name) - _bound_first(scope) if name in names else -1
        for call, caller in self._calls(scope):
            keyword = next((one.value for one in call.keywords if one.arg == name), None)
            if keyword is not None:
                yield keyword, caller
            elif 0 <= position < len(call.args):
                yield call.args[position], caller
        default = _default(name, scope)
        if default is not None:
            yield default, self.follow.scopes.of_node(scope.file, scope.node)

    def _calls(self, scope: Scope) -> Iterator[Tuple[ast.Call, Scope]]:
        """The running call of the function; where it has ended, the calls of its name that ran."""
        scopes = self.follow.scopes
        if scope.frame is not None:
            outer = scope.frame.f_back
            caller = scopes.of_frame(outer) if outer is not None else None
            call = scopes.call_of(outer) if caller is not None and outer is not None else None
            if call is not None and caller is not None:
                yield call, caller
            return
        wanted = getattr(scope.node, "name", "")
        if wanted == "__init__":
            wanted = getattr(scope.file.scope_of(scope.node), "name", "")
        yield from self.calls_of(wanted)

    def calls_of(self, name: str) -> Iterator[Tuple[ast.Call, Scope]]:
        """All calls of a function or class of that name that ran, the last first."""
        scopes = self.follow.scopes
        found: List[Tuple[int, ast.Call, Any]] = []
        for file in scopes.all_files() if name else ():
            for call in file.calls:
                if dotted(call.func).rpartition(".")[2] == name:
                    when = scopes.when(file, call)
                    if when is not None:
                        found.append((when, call, file))
        for _, call, file in sorted(found, key=lambda entry: entry[0], reverse=True):
            yield call, scopes.of_node(file, call)

    def _default(self, name: str, scope: Scope, value: Any, depth: int) -> Optional[Found]:
        node = _default(name, scope)
        outside = self.follow.scopes.of_node(scope.file, scope.node)
        answer = self.follow.origin(node, outside, value, depth - 1, "default")
        return {**answer, "name": answer["name"] or name} if answer is not None else None

    def _option(self, name: str, scope: Scope, value: Any) -> Optional[Found]:
        """The default in a decorator, as click has it: ``@click.option("--workers", default=0)``."""
        for decorator in getattr(scope.node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and dotted(decorator.func).endswith(("option", "argument")):
                words = [literal(one)[1] for one in decorator.args]
                plain = [str(word).lstrip("-").replace("-", "_") for word in words]
                for keyword in decorator.keywords:
                    if keyword.arg == "default" and name in plain and same(value, literal(keyword.value)[1]):
                        return self.follow.found("option", scope, keyword.value, str(words[0]))
        return None


def _may_have(mapping: Any, name: str) -> bool:
    return not isinstance(mapping, dict) or name in mapping


def _default(name: str, scope: Scope) -> Optional[ast.AST]:
    arguments = scope.node.args
    plain = [*getattr(arguments, "posonlyargs", ()), *arguments.args]
    defaults: Dict[str, Any] = {}
    for one, node in zip(reversed(plain), reversed(arguments.defaults)):
        defaults[one.arg] = node
    for one, node in zip(arguments.kwonlyargs, arguments.kw_defaults):
        defaults[one.arg] = node
    return defaults.get(name)


def _bound_first(scope: Scope) -> int:
    """1 for a method, whose first parameter the call does not show."""
    if type(scope.file.parents.get(scope.node)).__name__ != "ClassDef":
        return 0
    decorators = [dotted(one) for one in getattr(scope.node, "decorator_list", ())]
    return 0 if "staticmethod" in decorators else 1
