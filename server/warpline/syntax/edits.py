"""Changes to one file, kept as the smallest plain ranges; comments and formatting stay.

Every method raises :class:`Refused` rather than make a doubtful change. Nothing is written: the
result is a :class:`warpline.model.report.Fix`.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from functools import lru_cache

import libcst as cst

from warpline.model.report import Applicability, Edit, Fix
from warpline.syntax.imports import import_line, imported_names, local_name
from warpline.syntax.source import Position, Source, Statement
from warpline.text.edits import apply
from warpline.text.lines import starts


class Refused(Exception):
    """No edit can be made here; ``str()`` says why, in words for the end of a message."""


def attempted(make: Callable[[], Fix]) -> Fix | str:
    """The edit that ``make`` returns, or the reason for which it raises :class:`Refused`."""
    try:
        return make()
    except Refused as reason:
        return str(reason)


def free_name(source: Source, *names: str) -> str:
    """The first of ``names`` that the file does not use. Raises Refused where it uses them all."""
    taken = {name.value for name in source.nodes(cst.Name)}
    found = next((name for name in names if name not in taken), None)
    if found is None:
        raise Refused(f"the file has a `{names[0]}` already")
    return found


@lru_cache(maxsize=16)
def _parse(text: str) -> None:
    """Raises for what is no Python. The script's may be newer than ours: LibCST has the last word."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        cst.parse_module(text)


class Edits:
    """Collects changes to ``source``; :meth:`fix` makes them a Fix."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._changes: list[tuple[Position, Position, str]] = []
        self._imported: dict[str, str] = {}

    # -- expressions ----------------------------------------------------------------------------

    def replace(self, node: cst.CSTNode, new: cst.CSTNode | str) -> Edits:
        """Replace ``node`` by ``new`` (code, or a LibCST node). Returns these edits."""
        code = new if isinstance(new, str) else self.source.module.code_for_node(new)
        self._change(*self.source.span(node), code)
        return self

    def set_argument(
        self, call: cst.Call, name: str, code: str, position: int | None = None, *, lacks: bool = False
    ) -> Edits:
        """Pass ``name=code``: replaces the argument's value, or adds a keyword at the end. Returns these
        edits. Raises Refused if ``name`` may be in unpacked arguments; ``lacks``: it is known not to be."""
        present = self.source.argument(call, name, position)
        if present is not None:
            return self.replace(present.value, code)
        if not lacks and any(arg.star for arg in call.args):
            raise Refused(f"`{name}` may be in the unpacked arguments")
        if len(call.args) == 1 and isinstance(call.args[0].value, cst.GeneratorExp):
            raise Refused("its only argument is a generator expression")
        last = call.args[-1] if call.args else None
        self._append(call, last, f"{name}={code}")
        return self

    def set_entry(self, display: cst.Dict | cst.Call, key: str, code: str) -> Edits:
        """Give ``display`` the entry ``key: code``, or replace the value that it has; a call that makes a
        mapping gets it as an argument. Returns these edits."""
        if isinstance(display, cst.Call):
            return self.set_argument(display, key, code)
        for element in display.elements:
            if isinstance(element, cst.DictElement) and self.source.literal(element.key) == key:
                return self.replace(element.value, code)
        last = display.elements[-1] if display.elements else None
        self._append(display, last, f'"{key}": {code}')
        return self

    def _append(
        self, outer: cst.Call | cst.Dict, last: cst.Arg | cst.BaseDictElement | None, code: str
    ) -> None:
        """Put ``code`` behind the ``last`` item in brackets, on a line of its own where that one is."""
        end = self.source.span(outer)[1]
        closing = (end[0], end[1] - 1)
        if last is None:
            self._change(closing, closing, code)
            return
        last_end = self.source.span(last)[1]  # of the item, which may be in brackets: its value's lacks them
        tail = self.source.slice(last_end, closing)
        trailing = last.comma if isinstance(last.comma, cst.Comma) else None
        if "\n" not in tail and "\r" not in tail:
            at = closing if trailing else last_end
            self._change(at, at, (f" {code}" if tail.endswith(",") else code) if trailing else f", {code}")
            return
        # One item a line: the new one gets a line of its own, after the last one's comment.
        line = last_end[0]
        if trailing is None:
            self._change(last_end, last_end, ",")
        else:
            line = self.source.span(trailing)[0][0]
        line_end = (line, len(self.source.lines[line - 1]))
        indentation = self.source.indentation(self.source.line(last))
        comma = "," if trailing else ""
        self._change(line_end, line_end, f"{self.source.newline}{indentation}{code}{comma}")

    def remove_argument(self, call: cst.Call, name: str) -> None:
        """Remove the keyword ``name``, if it is passed. Raises Refused next to a comment."""
        args = list(call.args)
        index = next((i for i, arg in enumerate(args) if arg.keyword and arg.keyword.value == name), None)
        if index is None:
            return
        start, end = self.source.span(args[index])[0], self.source.span(args[index].value)[1]
        if index + 1 < len(args):
            end = self.source.span(args[index + 1])[0]
        elif index > 0:
            start = self.source.span(args[index - 1].value)[1]
        if "#" in self.source.slice(start, end):
            raise Refused(f"a comment is next to `{name}`")
        self._change(start, end, "")

    # -- statements -----------------------------------------------------------------------------

    def replace_head(self, loop: cst.For, code: str) -> None:
        """Put ``code`` for the head of a loop, up to its colon."""
        self._whole_line(loop)
        self._change(self.source.span(loop)[0], self.source.span(loop.iter)[1], code)

    def insert_before(self, statement: Statement, code: str) -> None:
        """Put whole lines of ``code`` (written without indentation) before ``statement``."""
        line = self.source.line(statement)
        self._whole_line(statement)
        self._change((line, 0), (line, 0), self._block(code, self.source.indentation(line)))

    def insert_after(self, statement: Statement, code: str, *, apart: bool = False) -> None:
        """Put whole lines of ``code`` (written without indentation) after ``statement``; with blank lines
        around them if ``apart``."""
        self._whole_line(statement)
        line = self.source.span(statement)[1][0]
        indentation = self.source.indentation(self.source.line(statement))
        if line < len(self.source.lines):
            block = self._block(code, indentation)
            if apart:
                below = self.source.lines[line].strip()
                block = self.source.newline + block + (self.source.newline if below else "")
            self._change((line + 1, 0), (line + 1, 0), block)
        else:
            at = (line, len(self.source.lines[line - 1]))
            block = self._block(code, indentation).removesuffix(self.source.newline)
            self._change(at, at, self.source.newline + block)

    def decorate(self, function: cst.FunctionDef, code: str) -> None:
        """Give ``function`` the decorator ``code``, below those that it has. Raises Refused where something
        else is on its line."""
        line = self.source.line(function.name)
        indentation = self.source.indentation(line)
        if not self.source.lines[line - 1].strip().startswith(("def ", "async ")):
            raise Refused("the function shares its line with another statement")
        self._change((line, 0), (line, 0), f"{indentation}@{code}{self.source.newline}")

    def replace_statement(self, statement: Statement, code: str) -> None:
        """Put ``code`` (written without indentation) where ``statement`` stands."""
        self._whole_line(statement)
        start, end = self.source.span(statement)
        block = self._block(code, self.source.indentation(start[0])).removesuffix(self.source.newline)
        self._change(start, end, block.lstrip(" \t"))

    def remove_call(self, call: cst.Call | None) -> Edits:
        """Remove a call that is a statement of its own. Returns these edits. Raises Refused for others."""
        statement = self.source.statement(call) if call is not None else None
        if call is None or statement is None or not isinstance(self.source.parent(call), cst.Expr):
            raise Refused("the call is not a statement of its own")
        self.remove(statement)
        return self

    def remove(self, statement: Statement) -> None:
        """Take ``statement`` out, with the comment behind it, which refers to it; comments on lines of
        their own stay. A block that would be empty gets ``pass``."""
        self._whole_line(statement)
        start, end = self.source.span(statement)
        line_end = (end[0], len(self.source.lines[end[0] - 1]))
        if len(self.source.block(statement)) == 1 and not isinstance(
            self.source.parent(statement), cst.Module
        ):
            self._change(start, line_end, "pass")
        elif end[0] < len(self.source.lines):
            self._change((start[0], 0), (end[0] + 1, 0), "")
        else:
            self._change((start[0], 0), line_end, "")

    def remove_function(self, function: cst.FunctionDef) -> None:
        """Take a function out with the blank lines above it, else those below. Raises Refused where a comment
        above tells about it, or its block would be empty."""
        lines = self.source.lines
        (first, _), (last, _) = self.source.span(function)
        above, below = first - 1, last
        while above and not lines[above - 1].strip():
            above -= 1
        if len(self.source.block(function)) == 1 or (above and lines[above - 1].strip().startswith("#")):
            raise Refused(f"`{function.name.value}` would have to go")
        while above == first - 1 and below < len(lines) and not lines[below].strip():
            below += 1
        self._whole_line(function)
        if below < len(lines):
            self._change((above + 1, 0), (below + 1, 0), "")
        else:
            self._change((above + 1, 0), (below, len(lines[below - 1])), "")

    def wrap(self, statements: list[Statement], header: str) -> None:
        """Indent ``statements`` (neighbours in one block) under ``header``, e.g. ``with x:``. Raises Refused
        if there are none, or one shares its line."""
        if not statements:
            raise Refused("there is nothing to put into the block")
        first = self.source.line(statements[0])
        last = self.source.span(statements[-1])[1][0]
        self._whole_line(statements[0])
        self._whole_line(statements[-1])
        indentation = self.source.indentation(first)
        step = self.source.module.default_indent
        self._change((first, 0), (first, 0), f"{indentation}{header}{self.source.newline}")
        inside_strings = self._string_lines(first, last)
        for line in range(first, last + 1):
            if self.source.lines[line - 1].strip() and line not in inside_strings:
                self._change((line, 0), (line, 0), step)

    # -- imports --------------------------------------------------------------------------------

    def add_import(self, wanted: str, statement: str) -> str:
        """How to write the dotted name ``wanted`` in this file; ``statement`` (``import torch``,
        ``from torch import nn``) is added once, after the imports, if it is not imported yet. Raises Refused
        if the name is taken, ValueError if ``statement`` does not import ``wanted``."""
        names = imported_names(self.source.nodes(cst.Import), self.source.nodes(cst.ImportFrom))
        top = [
            small
            for line in self.source.module.body
            if isinstance(line, cst.SimpleStatementLine)
            for small in line.body
        ]
        at_top = imported_names(
            [small for small in top if isinstance(small, cst.Import)],
            [small for small in top if isinstance(small, cst.ImportFrom)],
        )
        written = local_name(at_top | self._imported, wanted)
        if written is not None:
            return written
        parsed = cst.parse_statement(statement)
        small = parsed.body[0] if isinstance(parsed, cst.SimpleStatementLine) else None
        new = imported_names(
            [small] if isinstance(small, cst.Import) else [],
            [small] if isinstance(small, cst.ImportFrom) else [],
        )
        written = local_name(new, wanted)
        if written is None:
            raise ValueError(f"`{statement}` does not import `{wanted}`")
        taken = {name for name in new if name in names or self._says(name)}
        if taken and not all(names.get(name) == new[name] for name in taken):
            raise Refused(f"the name `{sorted(taken)[0]}` means something else in this file")
        self._imported |= new
        self._insert_import(statement)
        return written

    def _says(self, name: str) -> bool:
        """Whether the file binds a name itself. `from torch import nn` does not bind `torch`."""
        uses = self.source.uses(name, self.source.module)
        return any(self.source.enclosing(one, cst.Import, cst.ImportFrom) is None for one in uses)

    def _insert_import(self, statement: str) -> None:
        body = self.source.module.body
        index = import_line(self.source.module)
        if index:
            self.insert_after(body[index - 1], statement)
        elif body:
            self.insert_before(body[0], statement)
        else:
            self._change((1, 0), (1, 0), f"{statement}{self.source.newline}")

    def join(self, other: Edits) -> None:
        """Take over the changes of ``other``, of the same file; what both do is done once."""
        self._changes += [change for change in other._changes if change not in self._changes]
        self._imported |= other._imported

    # -- the result -----------------------------------------------------------------------------

    def fix(self, title: str, applicability: Applicability, *others: Edits) -> Fix:
        """All changes (and those of ``others``, in other files) as a Fix.

        Raises :class:`Refused` when they change nothing, overlap, or leave text that does not parse.
        """
        edits: list[Edit] = []
        for part in dict.fromkeys((self, *others)):
            edits += part._result()
        if not edits:
            raise Refused("the code already does this")
        return Fix(title, applicability, tuple(edits))

    def _result(self) -> list[Edit]:
        merged: dict[tuple[Position, Position], str] = {}
        for start, end, code in self._changes:
            key = (start, end)
            if key in merged and start != end:
                raise Refused("two changes overlap")
            merged[key] = merged.get(key, "") + code
        path = self.source.path
        edits = [Edit(path, start, end, code) for (start, end), code in merged.items()]
        small = [found for edit in edits if (found := self._smallest(edit)) is not None]
        small.sort(key=lambda edit: (edit.start, edit.end))
        try:
            _parse(apply(self.source.text, small))
        except (ValueError, cst.ParserSyntaxError) as error:
            raise Refused(f"the edit would not leave valid code ({str(error).splitlines()[0]})") from None
        return small

    def _smallest(self, edit: Edit) -> Edit | None:
        """``edit`` without what it would leave as it is at its start and end."""
        old, new = self.source.slice(edit.start, edit.end), edit.text
        if old == new:
            return None
        head = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        if old[:head].endswith("\r"):
            head -= 1
        tail = 0
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        if tail and old[len(old) - tail] == "\n":
            tail -= 1  # never between the two halves of a line end
        start = self._advance(edit.start, old[:head])
        return Edit(
            edit.file, start, self._advance(edit.start, old[: len(old) - tail]), new[head : len(new) - tail]
        )

    @staticmethod
    def _advance(position: Position, text: str) -> Position:
        lines = starts(text)
        if len(lines) == 1:
            return position[0], position[1] + len(text)
        return position[0] + len(lines) - 1, len(text) - lines[-1]

    def _change(self, start: Position, end: Position, code: str) -> None:
        self._changes.append((start, end, code))

    def _block(self, code: str, indentation: str) -> str:
        lines = textwrap.dedent(code).strip("\n").split("\n")
        return "".join((indentation + line if line else "") + self.source.newline for line in lines)

    def _whole_line(self, statement: Statement) -> None:
        start = self.source.span(statement)[0]
        if self.source.lines[start[0] - 1][: start[1]].strip():
            raise Refused("the statement shares its line with another one")
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) > 1:
            raise Refused("the statement shares its line with another one")

    def _string_lines(self, first: int, last: int) -> set[int]:
        found: set[int] = set()
        for node in self.source.nodes(cst.SimpleString, cst.FormattedString):
            (start, _), (end, _) = self.source.span(node)
            if first <= start and end <= last:
                found |= set(range(start + 1, end + 1))
        return found
