"""Qualified names of functions, also before Python 3.11, where code objects do not carry them."""

from __future__ import annotations

import types
from collections.abc import Callable
from types import CodeType


class QualifiedNames:
    """``of(code, path)`` -> ``"Block.forward"``. Before 3.11 found by compiling the file once more.

    ``text_of(path)``: the file as it was compiled, None where that is not known.
    """

    def __init__(self, text_of: Callable[[str], str | None] = lambda path: None) -> None:
        self.text_of = text_of
        #: path -> {(first line, name): qualified name}
        self.by_file: dict[str, dict[tuple[int, str], str]] = {}

    def of(self, code: CodeType, path: str) -> str:
        """A function's qualified name, such as ``Net.forward``; its plain name where the source cannot be
        read."""
        known: str | None = getattr(code, "co_qualname", None)
        if known is not None:
            return known
        names = self.by_file.get(path)
        if names is None:
            names = self.by_file[path] = self._read(path)
        return names.get((code.co_firstlineno, code.co_name), code.co_name)

    def _read(self, path: str) -> dict[tuple[int, str], str]:
        import linecache

        names: dict[tuple[int, str], str] = {}
        text = self.text_of(path)
        if text is None:
            text = "".join(linecache.getlines(path))
        try:
            module = compile(text, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return names
        self._walk(module, "", names)
        return names

    def _walk(self, code: CodeType, prefix: str, names: dict[tuple[int, str], str]) -> None:
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                name = prefix + constant.co_name
                names[constant.co_firstlineno, constant.co_name] = name
                # A class body is not a function: it uses no fast locals, and its members have no "<locals>".
                inner = name + ("." if not constant.co_flags & 0x2 else ".<locals>.")
                self._walk(constant, inner, names)
