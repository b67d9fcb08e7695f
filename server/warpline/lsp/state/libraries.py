"""Lines of libraries that a run's time went to: what an editor shows in a library's file.

They are parts of the user's lines, which add up to the step; no finding and no edit is made of them. A run
keeps no text of libraries: of each line it keeps what the line said, and where the file says something else
by now the line is left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from warpline.model.report import Inside, Line
from warpline.text.lines import split
from warpline.view.anchor_lines import Costs
from warpline.view.inside import Caller, part_name
from warpline.wire.inside import LONGEST_TEXT

#: A line of the user's, and a part of its time.
Part = tuple[Line, Inside]


class Libraries:
    """Asked for each file that has no results of its own; made when the first is."""

    def __init__(self, lines: Sequence[Line], sources: Mapping[str, str]) -> None:
        self._lines = lines
        self._sources = sources
        self._parts: dict[str, dict[int, list[Part]]] | None = None
        self._others: dict[str, str] = {}  # a file's path without links -> the path that the run has
        self._read: dict[str, tuple[str, Costs]] = {}

    def has(self, path: str) -> bool:
        """Whether the file is a library's in which the run spent time."""
        return bool(self.costs(path))

    def text(self, path: str) -> str:
        """The file as it was when it was first asked for."""
        return self._file(path)[0]

    def costs(self, path: str) -> Costs:
        """1-based line -> its costs, of lines that still say what they said in the run."""
        return self._file(path)[1]

    def callers(self, path: str, line: int) -> tuple[Caller, ...]:
        """The lines of the user's that a line's time is part of, longest first. ``line``: 1-based."""
        parts = self._found().get(self._in_run(path), {}).get(line, [])
        found = [Caller(part_name(entry), user.file, user.line, entry.step_ms) for user, entry in parts]
        return tuple(sorted(found, key=lambda each: -each.step_ms))

    def _found(self) -> dict[str, dict[int, list[Part]]]:
        if self._parts is None:
            self._parts = {}
            for user in self._lines:
                for entry in user.inside:
                    if entry.file not in self._sources:
                        lines = self._parts.setdefault(entry.file, {})
                        lines.setdefault(entry.line, []).append((user, entry))
        return self._parts

    def _in_run(self, path: str) -> str:
        """The path by which the run knows a file: an environment is often a link, or behind one, which some
        editors follow."""
        found = self._found()
        if path in found:
            return path
        if not self._others:
            self._others = {os.path.realpath(file): file for file in found}
        return self._others.get(os.path.realpath(path), path)

    def _file(self, path: str) -> tuple[str, Costs]:
        path = self._in_run(path)
        if path not in self._found():
            return "", {}
        if path not in self._read:
            text = _text(path)
            now = [line.strip()[:LONGEST_TEXT] for line in split(text)]
            costs = {
                line: _costs(path, line, parts)
                for line, parts in self._found()[path].items()
                if 0 < line <= len(now) and now[line - 1] and now[line - 1] == parts[0][1].text
            }
            self._read[path] = text, costs
        return self._read[path]


def _costs(path: str, line: int, parts: Sequence[Part]) -> tuple[Line, ...]:
    """One for each function with code on the line."""
    functions: dict[str, list[Inside]] = {}
    for _, entry in parts:
        functions.setdefault(entry.function, []).append(entry)
    return tuple(_cost(path, line, name, entries) for name, entries in functions.items())


def _cost(path: str, line: int, function: str, entries: Sequence[Inside]) -> Line:
    def total(field: str) -> float:
        return float(sum(getattr(entry, field) for entry in entries))

    return Line(
        file=path,
        line=line,
        function=function,
        step_ms=total("step_ms"),
        device_ms=total("device_ms"),
        forward_ms=total("forward_ms"),
        backward_ms=total("backward_ms"),
        recompute_ms=total("recompute_ms"),
        idle_ms=total("idle_ms"),
        cpu_ms=0.0,
        sync_ms=total("sync_ms"),
        calls=total("calls"),
        launches=0.0,
        memory_bytes=0,
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return ""
