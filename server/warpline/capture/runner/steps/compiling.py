"""Compiles the script's sources with our calls inserted in their loops; see ``written``."""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
from collections.abc import Callable
from typing import Any

from ....wire.loops import Loop
from ..places import absolute
from .written import Calls

#: ``number(loop)``, as ``written.Calls`` has it.
Number = Callable[[Loop], "int | None"]


def install(wanted: Callable[[str], bool], number: Number, leaving: bool, calls: dict[str, Any]) -> None:
    """Before the script is compiled. ``wanted(path)``: whether a file's loops are asked for with ``number``.

    ``calls``: what the inserted names stand for, by name. A module's cached bytecode is passed over.
    """
    vars(builtins).update(calls)
    loader: Any = importlib.machinery.SourceFileLoader
    source_to_code, get_code_before = loader.source_to_code, loader.get_code

    def to_code(self: Any, data: Any, path: Any, *arguments: Any, **named: Any) -> Any:
        file = absolute(path) if isinstance(path, str) else ""
        if not file or isinstance(data, ast.AST) or not wanted(file):
            return source_to_code(self, data, path, *arguments, **named)
        try:
            tree = Calls(file, number, leaving).visit(ast.parse(data, path))
            return compile(tree, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            pass  # too deeply nested, cannot be written out, or a syntax error of the script
        return source_to_code(self, data, path, *arguments, **named)

    def get_code(self: Any, fullname: str) -> Any:
        if not wanted(absolute(self.path)):
            return get_code_before(self, fullname)
        return self.source_to_code(self.get_data(self.path), self.path)

    loader.source_to_code, loader.get_code = to_code, get_code
