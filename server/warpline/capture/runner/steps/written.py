"""The loops of a source, and the source with calls of ours in some of them. Pure functions of its tree.

Before Python 3.12 there is no cheap way to observe the iterations of a loop, and a loop without optimizer,
loader or module calls nothing that marks them. So our calls are inserted into the syntax tree before it is
compiled: around the iterable of a ``for`` or of a comprehension, and before the test of a ``while``. Lines
and columns stay the same.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, List, Union

from ....wire.loops import Loop

#: Names of the inserted calls; they are builtins while the script runs.
ITEMS, TURN, LEAVE = "__warpline_items__", "__warpline_turn__", "__warpline_leave__"
_ANYWHERE = "__import__('builtins').__dict__.get(%r, lambda number, items=True: items)(%d)"
#: Decorators that compile a function themselves (numba, torch.jit) and would not find our names.
_COMPILES = re.compile(r"\b[nc]?jit\b|\b(gu)?vectorize\b")
#: Most characters of a loop's header: a message must fit into the pipe, and a header may hold a long table.
LONGEST = 200
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Calls(ast.NodeTransformer):
    """Inserts the calls. ``number(loop)``: the number that the loop's calls pass; None: insert no call.

    ``leaving``: also insert a call for leaving a ``while``.
    """

    def __init__(self, file: str, number: Callable[[Loop], int | None], leaving: bool) -> None:
        self.file = file
        self.number = number
        self.leaving = leaving
        self.scope: list[str] = []
        self.compiled = 0  # enclosing functions with a decorator that compiles them
        self.met: Counter[tuple[str, str]] = Counter()

    def _number(self, node: Any, header: str) -> int | None:
        function, header = ".".join(self.scope), header[:LONGEST]
        nth = self.met[function, header]
        self.met[function, header] += 1
        if self.compiled:
            return None
        return self.number(Loop(self.file, node.lineno, function, header, nth))

    def _scope(self, node: Any) -> Any:
        compiled = any(_COMPILES.search(_dotted(one)) for one in node.decorator_list)
        self.scope.append(node.name)
        self.compiled += compiled
        try:
            return self.generic_visit(node)
        finally:
            self.scope.pop()
            self.compiled -= compiled

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _scope

    def visit_For(self, node: ast.For) -> ast.AST:
        number = self._number(node, _header(node))
        self.generic_visit(node)
        if number is not None:
            node.iter = call(ITEMS, number, node.iter, [node.iter])
        return node

    def visit_While(self, node: ast.While) -> Union[ast.AST, List[ast.AST]]:
        number = self._number(node, "while " + ast.unparse(node.test))
        self.generic_visit(node)
        if number is None:
            return node
        turn = call(TURN, number, node.test, [])
        node.test = ast.copy_location(ast.BoolOp(ast.And(), [turn, node.test]), node.test)
        if not self.leaving:
            return node
        leave = ast.copy_location(ast.Expr(call(LEAVE, number, node, [])), node)
        return ast.copy_location(ast.Try(body=[node], handlers=[], orelse=[], finalbody=[leave]), node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Number a comprehension's first loop, and count its items."""
        if not isinstance(node, _COMPREHENSIONS):
            return super().generic_visit(node)
        first = node.generators[0]
        number = None if first.is_async else self._number(node, _header(first))
        super().generic_visit(node)
        if number is not None:
            first.iter = call(ITEMS, number, first.iter, [first.iter])
        return node


def _header(node: Any) -> str:
    return "for %s in %s" % (ast.unparse(node.target), ast.unparse(node.iter))


def _dotted(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


def call(name: str, number: int, at: ast.AST, arguments: list[ast.expr]) -> ast.expr:
    """The expression ``name(number, *arguments)``. Code may run where the name does not exist: cloudpickle
    sends a function's code to another process. There the expression gives what the loop has without it."""
    made: Any = ast.parse(_ANYWHERE % (name, number), mode="eval").body
    for part in ast.walk(made):
        if hasattr(part, "lineno"):
            ast.copy_location(part, at)
            # Not the end of a loop of several lines: that is where Python 3.11 says that a method is called.
            part.end_lineno, part.end_col_offset = part.lineno, part.col_offset  # type: ignore[attr-defined]
    made.args += arguments
    return made  # type: ignore[no-any-return]


def loops(tree: ast.Module, file: str) -> list[Loop]:
    """All loops of a file, in source order."""
    found: list[Loop] = []
    Calls(file, found.append, leaving=False).visit(tree)
    return sorted(found, key=lambda loop: loop.line)


def same(loop: Loop, other: Loop) -> bool:
    """Whether ``other``, of the source as it is now, is ``loop`` as it was found or asked for."""
    if not loop.header:
        return loop.line == other.line
    return (loop.function, loop.header, loop.nth) == (other.function, other.header, other.nth)


def around(tree: ast.Module, file: str, line: int) -> list[Loop]:
    """The loops with ``line`` in their bodies, within one function, outermost first. The body of a
    comprehension is all of its lines."""
    by_line: dict[int, list[Loop]] = {}
    for loop in loops(tree, file):
        by_line.setdefault(loop.line, []).append(loop)
    found = []
    for node in _function_at(tree, line):
        if isinstance(node, (ast.For, ast.While)):
            inside = node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
        elif isinstance(node, _COMPREHENSIONS):
            inside = node.lineno <= line <= (node.end_lineno or 0)
        else:
            continue
        if inside and by_line.get(node.lineno):
            found.append(by_line[node.lineno].pop(0))
    return sorted(found, key=lambda loop: loop.line)


def _function_at(tree: ast.Module, line: int) -> list[ast.AST]:
    """The nodes of the innermost function around ``line``, without those of functions inside it."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    inner: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, functions) and node.body[0].lineno <= line <= (node.end_lineno or 0):
            inner = node  # ast.walk comes to outer ones first
    found, left = [], list(ast.iter_child_nodes(inner))
    while left:
        node = left.pop()
        found.append(node)
        if not isinstance(node, functions):
            left += ast.iter_child_nodes(node)
    return found
