"""The code cells of a notebook in an editor as one script, and the way back from its lines to the cells.

The editor's server has no IPython: magics and shell commands are found by their first character, in cells
that are not plain Python.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from warpline.model.problem import Problem

_FIRST = "# Written by Warpline: the code cells of "
#: Cell magics with a Python body that the kernel runs in the user's namespace.
_TRANSPARENT = frozenset({"time", "capture", "warpline"})
_MAGIC = re.compile(r"\s*(?:[%!?]|[\w.]+\?{1,2}\s*$)")
_RESULT = re.compile(r"\s*[\w.,\s]+=\s*[!%]")


@dataclass(frozen=True, slots=True)
class Part:
    """Lines ``first`` to ``last`` (from 1) of the script: the ``number``-th code cell, line by line."""

    number: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Exported:
    notebook: str  # its path
    text: str
    parts: tuple[Part, ...]
    left_out: tuple[str, ...] = ()  # "Cell 1:2", lines with a magic or a shell command


def export(notebook: str, cells: Sequence[str]) -> Exported:
    """Raises Problem for a cell that uses the result of a magic, or is not Python."""
    left_out: list[str] = []
    plain = [_plain(number, cell, left_out) for number, cell in enumerate(cells, 1)]
    head = ["display = print"] if any("display(" in text for text in plain) else []
    parts: list[Part] = []
    lines = list(head)
    for number, text in enumerate(plain, 1):
        lines.append(f"# %% Cell {number}")
        first = len(lines) + 3  # two lines of our own come above
        lines += text.split("\n")
        parts.append(Part(number, first, len(lines) + 2))
    table = json.dumps([[part.number, part.first, part.last] for part in parts])
    above = [f"{_FIRST}{json.dumps(notebook)}", f"# Cells and their lines: {table}"]
    return Exported(notebook, "\n".join([*above, *lines]) + "\n", tuple(parts), tuple(left_out))


def parse(text: str) -> Exported | None:
    """The export that a script is, by what its first two lines say; None for any other."""
    if not text.startswith(_FIRST):
        return None
    first, _, rest = text.partition("\n")
    try:
        notebook = json.loads(first[len(_FIRST) :])
        table = json.loads(rest.partition("\n")[0].partition(": ")[2])
        parts = tuple(Part(*map(int, row)) for row in table)
    except (ValueError, TypeError, OverflowError, RecursionError):  # Infinity; brackets without end
        return None
    return Exported(notebook, text, parts) if isinstance(notebook, str) else None


def _plain(number: int, cell: str, left_out: list[str]) -> str:
    """The cell with its magics and shell commands as comments; its lines stay where they are."""
    lines = re.split(r"\r\n?|\n", cell)
    start = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if lines[start].startswith("%%"):
        whole = (lines[start][2:].split() or [""])[0] not in _TRANSPARENT
        until = len(lines) if whole else start + 1
        lines[start:until] = [f"# {line}" for line in lines[start:until]]
        left_out.append(f"Cell {number}:{start + 1}")
    if _error(lines) is None:
        return "\n".join(lines)
    inside = False
    for at, line in enumerate(lines):
        if _RESULT.match(line) and _error([line.strip()]) is not None:
            raise Problem(
                f"Cell {number}:{at + 1} uses the result of a magic or a shell command, which is not "
                "available outside the kernel: use Python there"
            )
        if inside or (_MAGIC.match(line) and not _goes_on(lines[:at])):
            indent = line[: len(line) - len(line.lstrip())]
            lines[at] = f"# {line}" if inside else f"{indent}pass  # {line.strip()}"
            if not inside:
                left_out.append(f"Cell {number}:{at + 1}")
            inside = line.rstrip().endswith("\\")
    if (error := _error(lines)) is not None:
        awaits = ": a cell that awaits at its top cannot be profiled" if "await" in cell else ""
        raise Problem(f"Cell {number}:{error.lineno or 1} is not plain Python ({error.msg}){awaits}")
    return "\n".join(lines)


def _goes_on(lines: Sequence[str]) -> bool:
    """Whether the next line goes on with a statement: ``%`` at its beginning is the operator then."""
    error = _error(lines)
    opened = error is not None and ("never closed" in error.msg or "unterminated triple" in error.msg)
    return opened or (bool(lines) and lines[-1].endswith("\\") and not lines[-1].lstrip().startswith("#"))


def _error(lines: Sequence[str]) -> SyntaxError | None:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        return error
    except ValueError as error:  # a null byte
        return SyntaxError(str(error))
    return None
