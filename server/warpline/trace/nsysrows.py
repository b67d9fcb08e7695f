"""Rows of an nsys export by the names of their columns; a missing table is empty, a missing column None."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

#: The name that ``warpline profile --nvtx`` gives to the range of a line.
LINE = re.compile(r"(?P<function>\S+) (?P<file>[^:\s]+\.py):(?P<line>\d+)$")
_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<line>\d+))?$")
_NUMBER = re.compile(r"(?P<function>.*?)[:( ]+(?P<line>\d+)\)?$")
#: ``ENUM_NSYS_EVENT_TYPE``: push and pop, start and end; the same of NVTX's text files.
_RANGES = (59, 60, 70, 71)
_MOST_SIZES = 1 << 12  # characters: a list of sizes is short


class Database:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.tables = {name for (name,) in tables}
        self.strings = {number: str(value) for number, value in self.rows("StringIds", "id", "value")}
        self._sizes: dict[str, list[Any]] = {}

    def has(self, table: str) -> bool:
        """Whether the export has a table. Which ones it has depends on what nsys recorded."""
        return table in self.tables

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """The rows in the order of the file. A value that is not a number, or does not fit, has SQLite's
        type."""
        if table not in self.tables:
            return
        known = {row[1] for row in self.connection.execute(f'PRAGMA table_info("{table}")')}
        chosen = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
        yield from self.connection.execute(f'SELECT {chosen} FROM "{table}"')

    def dicts(self, table: str, *columns: str) -> Iterator[dict[str, Any]]:
        """The rows that have a start and an end, as dicts."""
        for row in self.rows(table, *columns):
            named = dict(zip(columns, row, strict=True))
            if isinstance(named["start"], int) and isinstance(named["end"], int):
                yield named

    def text(self, number: int | None) -> str:
        """The string with a number; ``unknown`` if the export lacks it."""
        return self.strings.get(number, "unknown") if number is not None else "unknown"

    def labels(self, table: str) -> dict[int, str]:
        """The names of an enumeration's values."""
        return {number: str(label) for number, label in self.rows(table, "id", "label")}

    def ranges(self) -> Iterator[tuple[int, int, int, str]]:
        """Start, end, thread and name of the NVTX ranges that have ended."""
        columns = ("start", "end", "eventType", "globalTid", "text", "textId")
        for start, end, kind, thread, text, number in self.rows("NVTX_EVENTS", *columns):
            if kind in _RANGES and isinstance(start, int) and isinstance(end, int):
                yield start, end, thread or 0, str(text) if text is not None else self.text(number)

    def sizes(self, text: str) -> list[Any]:
        """``[[64, 8], [8]]`` as lists; [] for any other text."""
        if text not in self._sizes:
            try:
                value = json.loads(text) if len(text) <= _MOST_SIZES else []
            except (ValueError, RecursionError):
                value = []
            self._sizes[text] = value if isinstance(value, list) else []
        return self._sizes[text]

    def frames(self) -> dict[int, str]:
        """Call chain -> its innermost Python frame with a file, as "file.py(12): function".

        A Python frame's module is its file. The line, if there is one, follows the file or the function.
        """
        found: dict[int, tuple[int, str]] = {}
        for chain, symbol, module, depth in self.rows(
            "CUDA_CALLCHAINS", "id", "symbol", "module", "stackDepth"
        ):
            file = _FILE.match(self.text(module))
            if file is None:
                continue
            name = self.text(symbol)
            numbered = _NUMBER.match(name)
            line = file["line"] or (numbered["line"] if numbered else "1")
            function = numbered["function"] if numbered and not file["line"] else name
            frames = found.setdefault(chain, (depth, ""))
            if not frames[1] or depth < frames[0]:
                found[chain] = (depth, f"{file['file']}({line}): {function}")
        return {chain: frame for chain, (_, frame) in found.items()}


def device_facts(database: Database) -> list[dict[str, Any]]:
    """``TARGET_INFO_GPU`` as Kineto's ``deviceProperties``."""
    columns = ("name", "computeMajor", "computeMinor", "smCount", "totalMemory")
    return [
        {
            "name": str(name or ""), "computeMajor": major or 0, "computeMinor": minor or 0,
            "numSms": count or 0, "totalGlobalMem": memory or 0,
        }
        for name, major, minor, count, memory in database.rows("TARGET_INFO_GPU", *columns)
    ]  # fmt: skip
