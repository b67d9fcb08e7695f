"""The user's files as syntax trees: which function a line is in, what a function assigns."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

Scope = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module, ast.ClassDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)
LONGEST = 2_000_000  # characters; longer files are not parsed


class File:
    """A parsed file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = text.split("\n")
        self.tree = ast.parse(text)
        self.parents: Dict[ast.AST, ast.AST] = {}
        self.calls: List[ast.Call] = []
        self.functions: List[Any] = []
        self.classes: List[ast.ClassDef] = []
        self.texts: List[ast.Constant] = []  # of several lines
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if isinstance(node, ast.Call):
                self.calls.append(node)
            elif isinstance(node, FUNCTIONS):
                self.functions.append(node)
            elif isinstance(node, ast.ClassDef):
                self.classes.append(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
                self.texts.append(node)
        self._statements: Dict[ast.AST, List[ast.AST]] = {}

    def scope_of(self, node: ast.AST) -> Any:
        """The function, class or module that ``node`` is in."""
        found: Optional[ast.AST] = self.parents.get(node)
        while found is not None and not isinstance(found, (*SCOPES, ast.Module)):
            found = self.parents.get(found)
        return found or self.tree

    def function_scope(self, node: ast.AST) -> Any:
        """The function or module that is the scope of ``node``."""
        found = self.scope_of(node)
        while isinstance(found, ast.ClassDef):
            found = self.scope_of(found)
        return found

    def function_at(self, first_line: int, name: str) -> Any:
        """The function that begins on ``first_line`` (with its decorators)."""
        if name == "<module>":
            return self.tree
        for node in self.functions:
            begins = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            if begins == first_line and getattr(node, "name", "<lambda>") == name:
                return node
        return None

    def class_named(self, qualified: str) -> Optional[ast.ClassDef]:
        """The class of that name (the last part of ``Outer.Inner``); the last of several."""
        name = qualified.rpartition(".")[2]
        return next((node for node in reversed(self.classes) if node.name == name), None)

    def within(self, scope: Any) -> List[ast.AST]:
        """The nodes of ``scope`` in the order of the text, those of functions and classes in it left out."""
        if scope not in self._statements:
            body = scope.body if isinstance(scope.body, list) else [scope.body]
            self._statements[scope] = [node for statement in body for node in _walk(statement)]
        return self._statements[scope]

    def place_of(self, node: ast.AST) -> Tuple[int, int]:
        """Line, and column in code points."""
        line: int = getattr(node, "lineno", 0)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        before = text.encode("utf-8")[: getattr(node, "col_offset", 0)]
        return line, len(before.decode("utf-8", "replace"))

    def statement(self, node: ast.AST) -> ast.AST:
        """The statement that ``node`` is part of."""
        while not isinstance(node, ast.stmt) and node in self.parents:
            node = self.parents[node]
        return node


class Files:
    """Parsed when first asked for. ``text_of``: a file's text as it was compiled, where that is known."""

    def __init__(self, text_of: Callable[[str], Optional[str]] = lambda path: None) -> None:
        self.text_of = text_of
        self.known: Dict[str, Optional[File]] = {}

    def __getitem__(self, path: str) -> Optional[File]:
        if path not in self.known:
            self.known[path] = _read(path, self.text_of(path))
        return self.known[path]


def _read(path: str, text: Optional[str]) -> Optional[File]:
    try:
        if text is None:
            with open(path, encoding="utf-8") as file:
                text = file.read(LONGEST + 1)
        return File(path, text) if len(text) <= LONGEST else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def literal(node: Optional[ast.AST]) -> Tuple[bool, Any]:
    """Whether ``node`` is a literal, and its value."""
    if node is None:
        return False, None
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


def dotted(node: Optional[ast.AST]) -> str:
    """``a.b.c``; the last parts where what is before them is not a name; "" for anything else."""
    parts: List[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def same(value: Any, other: Any) -> bool:
    """Whether a literal stands for ``value``, perhaps through ``int(…)``, ``float(…)`` or ``str(…)``."""
    try:
        if type(value) is type(other) or {type(value), type(other)} <= {int, float}:
            return bool(value == other)
        if isinstance(value, (int, float, bool)) and isinstance(other, str):
            return str(value).lower() == other.lower() or float(other) == float(value)
        if isinstance(other, (tuple, list)) and isinstance(value, (tuple, list)):
            return list(other) == list(value)
        return str(value) == str(other)
    except Exception:
        return False
