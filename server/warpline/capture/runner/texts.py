"""Keeps the source of user files as it was compiled, so that saving a file later does not move line numbers.

Text is kept where Python turns it into code:

- ``SourceFileLoader.get_data``, called by the import system's ``get_code`` with the path of the source when
  it is compiled. The same method reads sources for tracebacks and ``inspect``; that is not what runs, and is
  recognized by the name of the calling function.
- The same with the path of the cached bytecode. No source is read then, so it is read here and believed only
  if the bytecode's header (PEP 552: time and size, or a hash) says that the bytecode was made from it.
- ``io.open_code``, with which ``runpy`` and we read scripts.

Other files (those that the script passes to ``exec`` itself, those imported before us) are read from disk at
the end. They are kept only if they were not saved meanwhile, or if they compile to the code that ran.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import os
import sys
import time
from itertools import accumulate
from types import CodeType
from typing import Any, BinaryIO, Iterable, Mapping

from .lines.userfiles import INSTALLED
from .patches import Patches
from .places import absolute

_ROOM = 256 * 1024  # bytes of files without recorded lines: chosen, as the server parses them
_HEADER = 16  # bytes of a .pyc before its code
_WITHOUT_ORDER = (CodeType, frozenset)  # constants with a ``repr`` that varies
_HASHED = 1  # in a .pyc's flags: the header holds a hash of the source


class Texts:
    """``{path: text}`` of what was compiled since ``install``, installed packages left out."""

    def __init__(self, include: Iterable[str] = (), overlay: Mapping[str, str] | None = None) -> None:
        """``include``: folders that count as the user's wherever they lie. ``overlay``: texts over files'."""
        self._include = tuple(os.path.join(absolute(folder), "") for folder in include)
        self._library = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
        self._compiled: dict[str, bytes] = {}
        self._begun = time.time()
        self._patches = Patches()
        self._patches.replace(importlib.machinery.SourceFileLoader, "get_data", self._reading, inherited=True)
        self._patches.replace(io, "open_code", self._opening)
        for path, text in (overlay or {}).items():
            self._compiled[absolute(path)] = text.encode("utf-8", "surrogatepass")

    def since_process_start(self) -> None:
        """Files that were imported before us count as unchanged only if they are older than the process."""
        self._begun = _process_began()

    def stop(self) -> None:
        """Stop keeping sources: later imports are not part of the measurement."""
        self._patches.restore()

    def text(self, path: str) -> str | None:
        """The text of one file as it was compiled; None where it was not seen."""
        data = self._compiled.get(path)
        return None if data is None else decoded(data)

    def trains(self) -> bool:
        """Whether any of them calls ``backward()``."""
        return any(b".backward(" in data for data in self._compiled.values())

    def beside(self, folder: str) -> list[str]:
        """Files below ``folder`` that were compiled, the smallest first, as many as have room: files with
        settings often have no line that takes any time."""
        inside = os.path.join(absolute(folder), "")
        sizes = sorted((len(data), path) for path, data in self._compiled.items() if path.startswith(inside))
        return [
            path for (_, path), taken in zip(sizes, accumulate(size for size, _ in sizes)) if taken <= _ROOM
        ]

    def of(self, paths: Iterable[str], codes: Iterable[CodeType]) -> dict[str, str]:
        """The texts of those ``paths`` that are known, as Python reads them: decoded, lines ended by LF.

        ``codes``: code that ran; it tells whether a file that is read only now still holds its text.
        """
        ran: dict[str, list[CodeType]] = {}
        for code in codes:
            ran.setdefault(absolute(code.co_filename), []).append(code)
        found = {}
        for path in dict.fromkeys(paths):
            data = self._compiled.get(path)
            if data is None:
                data = self._as_it_ran(path, ran.get(path, ()))
            if data is not None:
                found[path] = decoded(data)
        return found

    def _keep(self, path: str, data: bytes) -> None:
        self._compiled[absolute(path)] = data

    def users(self, path: object) -> bool:
        """Whether the file at ``path`` is the user's, and not installed."""
        if not isinstance(path, str):
            return False
        full = absolute(path)
        return full.startswith(self._include) or not (
            full.startswith(self._library) or INSTALLED.search(full)
        )

    def _reading(self, original: Any) -> Any:
        def get_data(loader: Any, path: str) -> bytes:
            data: bytes = original(loader, path)
            if sys._getframe(1).f_code.co_name == "get_code" and self.users(path):
                source: str = getattr(loader, "path", None) or ""
                if path == source:
                    self._keep(path, data)
                elif self.users(source):
                    self._keep_cached(source, data)
            return data

        return get_data

    def _keep_cached(self, source: str, bytecode: bytes) -> None:
        """Keep the source of a module whose cached bytecode was read, if the bytecode was made from it."""
        try:
            with open(source, "rb") as file:
                data, status = file.read(), os.fstat(file.fileno())
        except OSError:
            return
        if made_from(bytecode[:_HEADER], data, status.st_mtime):
            self._keep(source, data)

    def _opening(self, original: Any) -> Any:
        def open_code(path: str) -> BinaryIO:
            file: BinaryIO = original(path)
            if not (self.users(path) and path.endswith((".py", ".pyw"))):
                return file
            with file:
                data = file.read()
            self._keep(path, data)
            return io.BytesIO(data)  # and not the file again, which may be written in between

        return open_code

    def _as_it_ran(self, path: str, codes: Iterable[CodeType]) -> bytes | None:
        """The file's present content, if it was not saved since, or if it compiles to all of ``codes``."""
        try:
            with open(path, "rb") as file:
                data, saved = file.read(), os.fstat(file.fileno()).st_mtime
            if saved < self._begun:
                return data
            ran = {identity(code) for code in codes}
            made = compile(data, path, "exec", dont_inherit=True) if ran else None
        except (OSError, SyntaxError, ValueError):
            return None
        return data if ran and ran <= set(identities(made)) else None


def _process_began() -> float:
    """When this process began, in unix time; 0 where that is unknown. Linux: field 22 of ``/proc/self/stat``,
    in ticks since boot."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/stat", encoding="ascii") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith("btime "))
        return boot + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return 0.0


def made_from(header: bytes, source: bytes, mtime: float) -> bool:
    """Whether bytecode with this ``header`` was compiled from ``source``, a file of that time (in s)."""
    flags, one, other = (int.from_bytes(header[at : at + 4], "little") for at in (4, 8, 12))
    if flags & _HASHED:
        return importlib.util.source_hash(source) == header[8:16]
    return one == int(mtime) & 0xFFFFFFFF and other == len(source) & 0xFFFFFFFF


def decoded(data: bytes) -> str:
    """Source text as Python decodes it; where it cannot be, as UTF-8 with replacement characters."""
    try:
        return importlib.util.decode_source(data)
    except (SyntaxError, UnicodeDecodeError):
        return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def identities(code: Any) -> Iterable[tuple[Any, ...]]:
    """``identity`` of ``code`` and of all code inside it."""
    return map(identity, codes_in(code))


def codes_in(code: Any) -> Iterable[CodeType]:
    """``code`` and that of the functions and classes made in it; nothing where it is no code."""
    if isinstance(code, CodeType):
        yield code
        for constant in code.co_consts:
            yield from codes_in(constant)


def identity(code: CodeType) -> tuple[Any, ...]:
    """What is the same for two code objects that were compiled from the same text."""
    lines = code.co_lines() if hasattr(code, "co_lines") else code.co_lnotab
    plain = tuple(repr(constant) for constant in code.co_consts if not isinstance(constant, _WITHOUT_ORDER))
    return code.co_name, code.co_firstlineno, code.co_code, tuple(lines), code.co_names, plain
