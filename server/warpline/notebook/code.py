"""The executed cells of a notebook as one script, and the cell of each line."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpline.model.problem import Problem

#: Cell magics with a Python body that the kernel runs in the user's namespace.
_TRANSPARENT = frozenset({"time", "capture"})
_NOT_REPEATED = "get_ipython"

#: IPython's translation of magics, ``!commands`` and ``help?`` into calls of ``get_ipython()``.
Translate = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Cell:
    number: int  # its execution count
    source: str  # as it was typed


@dataclass(frozen=True, slots=True)
class Part:
    """Lines ``first`` to ``last`` of the script: a cell, which begins with its own line ``first - shift``."""

    number: int
    first: int
    last: int
    shift: int


@dataclass(frozen=True, slots=True)
class Script:
    text: str
    parts: tuple[Part, ...]
    first_line: int  # of the cell that is profiled

    def place(self, line: int) -> str:
        """``Cell [3]:5``: the cell's own line, its magic counted."""
        for part in self.parts:
            if part.first <= line <= part.last:
                return f"Cell [{part.number}]:{line - part.shift}"
        return f"line {line}"

    def placed(self, name: str) -> Callable[[str], str]:
        """Puts cells in the place of lines of this script, which is called ``name`` in texts of ours."""
        pattern = re.compile(rf"(?:\S*/)?{re.escape(name)}:(\d+)")
        return lambda words: pattern.sub(lambda match: self.place(int(match[1])), words)


def file_name(names: Mapping[str, Any]) -> str:
    """The notebook's name where the front end tells it (VS Code, Jupyter), fit for a file's name.

    ``names``: the kernel's global variables.
    """
    told = names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME") or "notebook"
    return re.sub(r"[^\w.-]", "_", Path(str(told)).name) or "notebook"


def script(before: Iterable[Cell], profiled: Cell, translate: Translate) -> Script:
    """The cells in the order in which they ran, and ``profiled`` (its source without ``%%warpline``, which
    was its first line).

    Magics and shell commands are left out: the process that runs the script inherits the kernel's folder and
    environment, which is what most of them change. Raises Problem if its result is used.
    """
    lines = ["# Written by %%warpline: what the notebook's kernel has run, then the cell that is profiled."]
    parts = []
    python = [(cell, _python(cell, translate), 0) for cell in before]
    python.append((profiled, _without_magics(profiled, translate), 1))
    if any("display(" in text for _, text, _ in python):
        lines.append("display = print")
    for cell, text, above in python:
        if not text.strip():
            continue
        lines.append(f"# In [{cell.number}]")
        first = len(lines) + 1
        lines += text.split("\n")
        parts.append(Part(cell.number, first, len(lines), first - 1 - above))
    if not parts or parts[-1].number != profiled.number:
        raise Problem("there is nothing to profile in this cell")
    return Script("\n".join(lines) + "\n", tuple(parts), parts[-1].first)


def _python(cell: Cell, translate: Translate) -> str:
    """What of an earlier cell is Python; its line numbers stay."""
    head, _, body = cell.source.lstrip("\n").partition("\n")
    if not head.startswith("%%"):
        return _without_magics(cell, translate)
    if (head[2:].split() or [""])[0] not in _TRANSPARENT:
        return ""  # another language; and what %%warpline profiled did not run in the kernel
    above = cell.source[: len(cell.source) - len(cell.source.lstrip("\n"))]
    return _without_magics(Cell(cell.number, f"{above}\n{body}"), translate)


def _without_magics(cell: Cell, translate: Translate) -> str:
    kept = cell.source.lstrip("\n")
    text = "\n" * (len(cell.source) - len(kept)) + translate(kept).rstrip("\n")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        where = f"Cell [{cell.number}]:{error.lineno}"
        awaits = ": a cell that awaits at its top cannot be profiled" if "await" in text else ""
        raise Problem(f"{where} is not plain Python ({error.msg}){awaits}") from None
    lines = text.split("\n")
    for node in [*ast.walk(tree)]:
        if isinstance(node, ast.Expr) and _is_magic(node.value):
            last = node.end_lineno or node.lineno
            indent = lines[node.lineno - 1][: node.col_offset]
            lines[node.lineno - 1 : last] = [f"{indent}pass", *[""] * (last - node.lineno)]
    for node in ast.walk(ast.parse("\n".join(lines))):
        if _is_magic(node):
            line = getattr(node, "lineno", 0)
            raise Problem(
                f"Cell [{cell.number}]:{line} uses the result of a magic or a shell command, which is "
                "not available outside the kernel: skip the cell with --skip, or use Python there"
            )
    return "\n".join(lines)


def _is_magic(node: ast.AST) -> bool:
    """``get_ipython().system(…)`` and the like."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    shell = node.func.value
    return isinstance(shell, ast.Call) and isinstance(shell.func, ast.Name) and shell.func.id == _NOT_REPEATED
