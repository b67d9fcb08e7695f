"""Whether an edit takes effect: its line ran before the measured steps ended, in a file of the project.

An edit in a branch that was not taken, below the training loop (or the call that runs it), or in another
project's file changes nothing that was measured. If the run does not say whether a line ran, it counts as
reached.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import libcst as cst

from warpline.model.profile import Profile
from warpline.model.report import Edit, Fix
from warpline.rulekit.still_running import StillRunning
from warpline.syntax.source import Position, Source, Statement
from warpline.wire.sites import Compile, Loader, Triton, facts_of

#: Statements without code of their own: Python traces no line of them.
_SILENT = (cst.Global, cst.Nonlocal)


class Reached:
    """Asked about lines of the text as it is now (the profile has been moved onto it)."""

    def __init__(self, profile: Profile) -> None:
        facts = profile.facts
        self.argv = profile.manifest.argv
        self._executed = facts.executed
        self._still = StillRunning(profile)
        ran = {(file, line) for _, file, line, _ in facts.gc_full}  # in a later step perhaps
        self._lines = {
            file: frozenset(lines) | {line for other, line in ran if other == file}
            for file, lines in facts.executed.lines.items()
        }
        self._roots = tuple(root.rstrip("/\\") + os.sep for root in profile.manifest.roots)
        self._births = {frame.place for site in facts.sites for frame in site.frames}
        self._kept: list[tuple[str, Position, Position]] = []
        # Code that Python does not run itself: compiled, of a kernel, in a worker process.
        self._elsewhere = bool(facts.compiled_kernels or facts.compile_events) or any(
            site.kind in (Compile.KIND, Triton.KIND)
            or (site.kind == Loader.KIND and facts_of(Loader, site).num_workers)
            for site in facts.sites
        )

    def keep(self, source: Source, node: cst.CSTNode) -> None:
        """Edits of ``node`` keep what the program does there as it was: they need not be reached, the edit
        that they belong to has to be."""
        self._kept.append((source.path, *source.span(node)))

    def statement(self, source: Source, statement: Statement | None) -> bool | None:
        """Whether ``statement`` ran; None where that is not known."""
        if statement is None or not self._executed.complete or source.path not in self._lines:
            return None
        first, last = _own_lines(source, statement)
        lines = self._lines[source.path]
        if any(line in lines for line in range(first, last + 1)):
            return True
        partial = self._executed.partial.get(source.path, ())
        if any(begin <= last and first <= end for begin, end in partial):
            return None
        if _is_silent(statement) or self._not_here(source, statement):
            return None
        return False

    def node(self, source: Source, node: cst.CSTNode) -> bool | None:
        """Whether the statement that ``node`` is part of ran."""
        return self.statement(source, source.statement(node))

    def done(self, source: Source, node: cst.CSTNode) -> bool | None:
        """Whether the statement that ``node`` is part of ran to its end before the steps, or in each."""
        own = source.statement(node)
        if own is not None and self._still.statement(source, own):
            return False
        return self.statement(source, own)

    def _not_here(self, source: Source, statement: Statement) -> bool:
        """Whether the function around a statement may run where this process does not see it."""
        function = source.enclosing(statement, cst.FunctionDef)
        if function is None or not self._elsewhere:
            return False
        lines = source.extent(function)
        return not any(file == source.path and line in lines for file, line in self._births)

    def refusal(self, fix: Fix, source_of: Callable[[str], Source]) -> str | None:
        """Why ``fix`` would change nothing that was measured, in words for the end of a message."""
        for edit in fix.edits:
            if self._roots and not edit.file.startswith(self._roots):
                return f"`{Path(edit.file).name}` belongs to another project"
        return next(filter(None, (self._unreached(source_of(edit.file), edit) for edit in fix.edits)), None)

    def _unreached(self, source: Source, edit: Edit) -> str | None:
        line = edit.start[0]
        if edit.start == edit.end and not edit.text.strip():
            return None  # the indentation of a line that stays
        if any(file == edit.file and a <= edit.start and edit.end <= b for file, a, b in self._kept):
            return None
        if edit.start != edit.end or not _is_whole_lines(source, edit):
            ran = self.statement(source, source.statement_at(line))
            return _not_run(source, line) if ran is False else None
        # New lines run if what follows them in their block ran, or what ends the block came to its end.
        wanted = re.match(r"\s*", edit.text.lstrip("\r\n"))[0]  # type: ignore[index]  # matches all
        before, after = _above(source, line + (edit.start[1] > 0)), _below(source, line + (edit.start[1] > 0))
        above, below = (_of_block(source, near, wanted) for near in (before, after))
        ran = self.statement(source, below)
        if ran is None and above is not None:
            if self._still.statement(source, above):
                return f"`{source.lines[source.line(above) - 1].strip()}` still runs while the steps do"
            after, ran = before, self.statement(source, above)
        return _not_run(source, after) if ran is False else None


def touches(fix: Fix, place: tuple[str, int], source_of: Callable[[str], Source]) -> bool:
    """Whether ``fix`` edits the statement on the line of ``place``, or the lines beside it."""
    file, line = place
    source = source_of(file)
    statement = source.statement_at(line)
    first, last = (line, line)
    if statement is not None:
        first, last = _own_lines(source, statement)
        first, last = min(first, line), max(last, line)
    return any(edit.file == file and edit.start[0] <= last + 1 and first <= edit.end[0] for edit in fix.edits)


def main_edit(fix: Fix) -> Edit:
    """The edit that the fix is about: the first that is not an import and no mere indentation."""
    telling = [edit for edit in fix.edits if not re.match(r"\s*((import|from)\b|$)", edit.text)]
    return (telling or list(fix.edits))[0]


def _own_lines(source: Source, statement: Statement) -> tuple[int, int]:
    """First and last line of a statement; of a compound one, those of its head."""
    (first, _), (last, _) = source.span(statement)
    body = getattr(statement, "body", None)
    if isinstance(body, cst.IndentedBlock) and body.body:
        return first, max(first, source.line(body.body[0]) - 1)
    return first, last


def _is_silent(statement: Statement) -> bool:
    if isinstance(statement, cst.Try):
        return True
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return all(
        isinstance(small, _SILENT)
        or (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString))
        for small in statement.body
    )


def _not_run(source: Source, line: int) -> str:
    return f"`{source.lines[line - 1].strip()}` did not run before the measured steps"


def _of_block(source: Source, line: int, indentation: str) -> Statement | None:
    """The statement on ``line`` of the block with that indentation; None where the block ends there."""
    statement = source.statement_at(line) if 0 < line <= len(source.lines) else None
    while statement is not None and source.indentation(source.line(statement)) > indentation:
        outer = source.parent(statement)
        statement = source.statement(outer) if outer is not None else None
    same = statement is not None and source.indentation(source.line(statement)) == indentation
    return statement if same else None


def _is_whole_lines(source: Source, edit: Edit) -> bool:
    line, column = edit.start
    at_end = line <= len(source.lines) and column == len(source.lines[line - 1])
    return (column == 0 and edit.text.endswith(("\n", "\r"))) or (
        at_end and edit.text.startswith(("\n", "\r"))
    )


def _below(source: Source, line: int) -> int:
    """The first line from ``line`` on that has code."""
    while line <= len(source.lines) and not source.lines[line - 1].split("#")[0].strip():
        line += 1
    return line


def _above(source: Source, line: int) -> int:
    """The last line above ``line`` that has code."""
    line -= 1
    while line > 0 and not source.lines[line - 1].split("#")[0].strip():
        line -= 1
    return line
