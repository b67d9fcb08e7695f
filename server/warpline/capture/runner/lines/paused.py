"""Quick loops of functions before Python 3.12: the trace function is off while they run.

A trace function slows down every instruction, also where no line event is wanted. So for the capture, a
function with quick loops gets other code. It is compiled from the same source and switches the trace function
off before each of them and on again after it. Lines stay the same. The rest of the function is recorded as
usual.
"""

from __future__ import annotations

import ast
import builtins
import gc
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any, List, Union

from ..steps.written import call
from ..texts import codes_in, identities, identity

#: Names of the inserted calls; they are builtins during a capture.
PAUSE, RESUME = "__warpline_pause__", "__warpline_resume__"
_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def written(code: CodeType, text: str | None) -> list[tuple[int, int]]:
    """First and last line of each ``for`` and ``while`` in the function of ``code``, outer ones first.

    Empty where ``text`` is not what it was compiled from.
    """
    tree = _tree(code, text)
    return [] if tree is None else [(node.lineno, node.end_lineno or 0) for node in _loops_of(tree, code)]


def rewritten(code: CodeType, text: str | None, first_lines: Iterable[int]) -> CodeType | None:
    """``code`` with the calls around the loops that begin on ``first_lines``; None where that cannot be."""
    tree = _tree(code, text)
    if tree is None:
        return None
    wanted = {node for node in _loops_of(tree, code) if node.lineno in set(first_lines)}
    made = compile(_Around(wanted).visit(tree), code.co_filename, "exec", dont_inherit=True)
    return next((found for found in codes_in(made) if _replaces(found, code)), None)


def functions_of(code: CodeType) -> list[FunctionType]:
    """The functions that run ``code`` now."""
    return [one for one in gc.get_referrers(code) if isinstance(one, FunctionType) and one.__code__ is code]


def _tree(code: CodeType, text: str | None) -> ast.Module | None:
    try:
        if text is None or identity(code) not in identities(
            compile(text, code.co_filename, "exec", dont_inherit=True)
        ):
            return None
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _loops_of(tree: ast.Module, code: CodeType) -> list[Any]:
    """The loops of a function, without those of functions inside it."""
    left: list[ast.AST] = [
        node for node in ast.walk(tree) if _begins(node) == (code.co_name, code.co_firstlineno)
    ]
    found = []
    while left:
        node = left.pop(0)
        for inner in ast.iter_child_nodes(node):
            if not isinstance(inner, _FUNCTIONS):
                left.append(inner)
                found += [inner] * isinstance(inner, _LOOPS)
    return found


def _begins(node: ast.AST) -> tuple[str, int] | None:
    if not isinstance(node, ast.FunctionDef):
        return None
    return node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


class _Around(ast.NodeTransformer):
    """Puts the calls around loops."""

    def __init__(self, wanted: set[Any]) -> None:
        self.wanted = wanted

    def _visit(self, node: Any) -> Union[ast.AST, List[ast.AST]]:
        if node not in self.wanted:
            return self.generic_visit(node)
        pause, resume = (
            ast.copy_location(ast.Expr(call(name, 0, node, [])), node) for name in (PAUSE, RESUME)
        )
        return ast.copy_location(
            ast.Try(body=[pause, node], handlers=[], orelse=[], finalbody=[resume]), node
        )

    visit_For = visit_While = _visit


def _replaces(made: CodeType, code: CodeType) -> bool:
    """Whether a function may have ``made`` in the place of ``code``."""
    names = ("co_name", "co_firstlineno", "co_varnames", "co_freevars", "co_cellvars", "co_argcount",
             "co_kwonlyargcount", "co_posonlyargcount", "co_flags")  # fmt: skip
    return all(getattr(made, name) == getattr(code, name) for name in names)


class Swapped:
    """Functions that run other code while they are captured."""

    def __init__(self, pause: Callable[[int], bool], resume: Callable[[int], bool]) -> None:
        self.calls = {PAUSE: pause, RESUME: resume}
        self.codes: dict[CodeType, CodeType] = {}
        self.functions: list[tuple[FunctionType, CodeType, CodeType]] = []

    def choose(self, codes: dict[CodeType, CodeType]) -> None:
        """From the next ``begin`` on, functions of each code run the other one."""
        self.codes = codes
        self.functions = [
            (function, code, other) for code, other in codes.items() for function in functions_of(code)
        ]

    def begin(self) -> None:
        vars(builtins).update(self.calls if self.functions else {})
        for function, code, other in self.functions:
            if function.__code__ is code:
                function.__code__ = other

    def end(self) -> None:
        for function, code, other in self.functions:
            if function.__code__ is other:
                function.__code__ = code
        for name in self.calls:
            vars(builtins).pop(name, None)  # code that still runs does without: see ``call``
