"""Finds in a run what a budget names: a function by name, a line by its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from warpline.check.budgets import FunctionLimit, LineLimit
from warpline.model.problem import Problem
from warpline.model.report import Report
from warpline.text.lines import lines_of
from warpline.view import text


@dataclass(frozen=True, slots=True)
class Run:
    """What is read of a run: its report, the texts that ran, the steps timed without the profiler."""

    name: str
    report: Report
    sources: dict[str, str]
    timed_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that a budget is about: of one file, and where it is shown (1-based)."""

    file: str
    shown: int
    numbers: frozenset[int]

    def ms(self, run: Run) -> float:
        """What they cost together, in milliseconds of a step; lines that were never seen cost nothing."""
        return sum(
            line.step_ms for line in run.report.lines if line.file == self.file and line.line in self.numbers
        )


def of_function(limit: FunctionLimit, run: Run) -> Lines:
    """Raises Problem where no function is called so, or several are."""
    found: list[tuple[str, Lines]] = []
    for file in [file_called(limit.file, run)] if limit.file else sorted(run.sources):
        for name, first, numbers in _functions(run.sources.get(file, "")):
            if name == limit.name or name.endswith(f".{limit.name}"):
                found.append((name, Lines(file, first, numbers)))
    exact = [one for one in found if one[0] == limit.name] or found
    if not found:
        raise Problem(f"no function of the run is called {limit.name}, so the budget cannot be checked")
    if len(exact) > 1:
        places = ", ".join(f"{name} at {text.printable(one.file)}:{one.shown}" for name, one in exact)
        raise Problem(f"several functions are called {limit.name} ({places}): add file, or more of the name")
    return exact[0][1]


def of_line(limit: LineLimit, run: Run) -> Lines:
    """Raises Problem where no line says so, or several do."""
    file = file_called(limit.file, run)
    written = lines_of(run.sources.get(file, ""))
    if limit.line is not None:
        if limit.line > len(written):
            raise Problem(f"{limit.file} has no line {limit.line}, so the budget cannot be checked")
        return Lines(file, limit.line, frozenset({limit.line}))
    wanted = limit.text.strip()
    numbers = [at for at, line in enumerate(written, 1) if line.strip() == wanted]
    if limit.function:
        inside = next(
            (n for name, _, n in _functions(run.sources[file]) if name == limit.function), frozenset()
        )
        numbers = [number for number in numbers if number in inside]
    if not numbers:
        where = f"{limit.function} of {limit.file}" if limit.function else limit.file
        raise Problem(f"no line of {where} has the text {wanted!r}, so the budget cannot be checked")
    if len(numbers) > 1:
        many = ", ".join(map(str, numbers))
        raise Problem(
            f"several lines of {limit.file} have the text {wanted!r} ({many}): add function, or use line"
        )
    return Lines(file, numbers[0], frozenset(numbers))


def file_called(name: str, run: Run) -> str:
    """The one file of the run that ``name`` is the path of, or the end of it. Raises Problem."""
    known = {*run.sources, *(line.file for line in run.report.lines)}
    tail = "/" + name.replace("\\", "/").removeprefix("./").lstrip("/")
    found = sorted(file for file in known if ("/" + file.replace("\\", "/")).endswith(tail))
    if not found:
        raise Problem(f"no file of the run is called {name}, so the budget cannot be checked")
    if len(found) > 1:
        raise Problem(f"several files of the run are called {name}: {', '.join(found)}")
    return found[0]


def _functions(source: str) -> Iterator[tuple[str, int, frozenset[int]]]:
    """Name (``Block.forward``), line of the ``def`` and lines of the body of each function. What is inside
    another function or class defined in it is not of its body."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    yield from _below(tree, "")


def _below(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, frozenset[int]]]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _below(child, prefix)
            continue
        name = f"{prefix}{child.name}"
        inner = list(_below(child, f"{name}."))
        yield from inner
        if not isinstance(child, ast.ClassDef):
            last = child.end_lineno or child.lineno
            others = frozenset().union(*(numbers for _, _, numbers in inner))
            yield name, child.lineno, frozenset(range(child.lineno, last + 1)) - others
