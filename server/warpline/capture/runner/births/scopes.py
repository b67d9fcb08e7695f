"""Functions and modules as they ran: their syntax, and their frame while they are running."""

from __future__ import annotations

import ast
import os
import sys
from types import FrameType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..lines.executed import Executed
from ..lines.userfiles import UserFiles
from .peek import UNKNOWN, attribute, value_of
from .syntax import FUNCTIONS, File, Files, dotted

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Scope(NamedTuple):
    file: File
    node: Any  # a function or a module
    frame: Optional[FrameType]
    globals: Dict[str, Any]

    def value(self, node: Optional[ast.AST]) -> Any:
        """The present value of an expression in it."""
        local = self.frame.f_locals if self.frame is not None else None
        if local is None and self.node is not self.file.tree and not _is_global(self, node):
            return UNKNOWN
        return value_of(node, local, self.globals)


def _function_of(frame: FrameType) -> FrameType:
    """The frame of the function with the comprehension that runs in ``frame``: before Python 3.12 it has one
    of its own, and a generator always."""
    outer = frame.f_back if frame.f_code.co_name in _COMPREHENSIONS else None
    while outer is not None and frame.f_code not in outer.f_code.co_consts:
        outer = outer.f_back
    return _function_of(outer) if outer is not None else frame


def _is_global(scope: Scope, node: Optional[ast.AST]) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and not binds(scope.node, node.id)


def binds(node: Any, name: str) -> bool:
    """Whether a function has a parameter or an assignment of that name."""
    if not isinstance(node, FUNCTIONS):
        return False
    arguments = node.args
    every = [*getattr(arguments, "posonlyargs", ()), *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    if any(one.arg == name for one in every):
        return True
    return any(
        isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store)
        for inner in ast.walk(node)
    )


class Scopes:
    def __init__(self, user_files: UserFiles, files: Files, executed: Executed) -> None:
        self.user_files = user_files
        self.files = files
        self.executed = executed
        self.modules: Dict[str, Any] = {}

    def of_frame(self, frame: FrameType) -> Optional[Scope]:
        """The function that runs in a frame, or in that of a comprehension of it. None where it is not the
        user's, or its source cannot be read."""
        frame = _function_of(frame)
        path = self.user_files[frame.f_code.co_filename]
        file = self.files[path] if path is not None else None
        if file is None:
            return None
        node = file.function_at(frame.f_code.co_firstlineno, frame.f_code.co_name)
        return Scope(file, node, frame, frame.f_globals) if node is not None else None

    def of_node(self, file: File, node: ast.AST) -> Scope:
        """The function that ``node`` is in, which may have ended."""
        module = self.module_at(file.path)
        return Scope(file, file.function_scope(node), None, vars(module) if module is not None else {})

    def of_module(self, module: Any) -> Optional[Scope]:
        """A module's top level. None where it is not the user's."""
        path = self.user_files[getattr(module, "__file__", None) or "<none>"]
        file = self.files[path] if path is not None else None
        return Scope(file, file.tree, None, vars(module)) if file is not None else None

    def module_at(self, path: str) -> Any:
        """The imported module with this path, or None."""
        found = self.modules.get(path)
        if found is None:
            for module in list(sys.modules.values()):
                file = getattr(module, "__file__", None)
                if isinstance(file, str):
                    self.modules.setdefault(os.path.abspath(file), module)
            found = self.modules.get(path)
        return found

    def all_files(self) -> List[File]:
        """The user's files with lines that ran."""
        paths = dict.fromkeys(path for path, _ in self.executed.order)
        return [file for file in map(self.files.__getitem__, paths) if file is not None]

    def when(self, file: File, node: ast.AST) -> Optional[int]:
        """The position of the statement of ``node`` in the order of first runs; -1 if unknown, None if it has
        not run."""
        statement: Any = file.statement(node)
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
        body = getattr(statement, "body", None)
        last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno
        seen = [self.executed.ran(file.path, line) for line in range(first, last + 1)]
        known = [number for number in seen if number is not None]
        if known:
            return max(known)
        return None if self.executed.knows(file.path, first) else -1

    def call_of(self, frame: FrameType) -> Optional[ast.Call]:
        """The call that ``frame`` is executing."""
        scope = self.of_frame(frame)
        if scope is None:
            return None
        exact = _position(frame)
        if exact is not None:
            for call in scope.file.calls:
                if (call.lineno, call.end_lineno, call.col_offset, call.end_col_offset) == exact:
                    return call
            return None
        line = frame.f_lineno
        found = [
            call
            for call in scope.file.calls
            if call.lineno <= line <= (call.end_lineno or 0) and scope.file.function_scope(call) is scope.node
        ]
        # Before Python 3.11 a frame knows its line only: of several calls there, the outermost one.
        found.sort(key=lambda call: (call.lineno != line, -((call.end_lineno or 0) - call.lineno)))
        return found[0] if found else None

    def imported(self, scope: Scope, node: ast.ImportFrom) -> Any:
        """The module that ``from x import …`` reads."""
        name = node.module or ""
        if node.level:
            package = scope.globals.get("__package__") or ""
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1]
            name = ".".join([*base, name] if name else base)
        return sys.modules.get(name)

    def function(self, scope: Scope, node: ast.AST) -> Optional[Tuple[File, Any]]:
        """The user's function that the expression ``node`` calls."""
        target = scope.value(node)
        if target is UNKNOWN and isinstance(node, ast.Attribute) and scope.frame is not None:
            target = attribute(type(scope.value(node.value)), node.attr)
        code = getattr(getattr(target, "__func__", target), "__code__", None)
        path = self.user_files[code.co_filename] if code is not None else None
        if path is not None and code is not None:
            file = self.files[path]
            found = file.function_at(code.co_firstlineno, code.co_name) if file is not None else None
            return (file, found) if file is not None and found is not None else None
        name = dotted(node).rpartition(".")[2]
        for file in [scope.file, *self.all_files()]:
            for function in file.functions:
                if getattr(function, "name", None) == name and name:
                    return file, function
        return None


def _position(frame: FrameType) -> Optional[Tuple[int, int, int, int]]:
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    for at, (line, end, column, end_column) in enumerate(positions()):
        if at == frame.f_lasti // 2:
            return (line, end, column, end_column) if None not in (line, end, column, end_column) else None
    return None
