"""Reads files that may be gzipped; a damaged one is read up to the damage."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Protocol

from warpline import packed

GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 64 << 10  # bytes read from the file at a time


class Text(Protocol):
    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def __enter__(self) -> Text: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None: ...


def is_packed(path: Path) -> bool:
    """Whether a file is gzipped, by its first two bytes."""
    with path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def opened(path: Path) -> Text:
    """Open ``path`` for reading. If it is gzipped and cut or damaged, ``read`` raises EOFError at that point.

    ``gzip.open`` would lose up to a buffer of the text before that point.
    """
    return Unpacked(path) if is_packed(path) else path.open("rb")


class Unpacked:
    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._stream = packed.inflating()
        self._packed = b""
        self._error = ""

    def read(self, size: int, /) -> bytes:
        """``size`` bytes, fewer only at the end. Raises EOFError at the point where unpacking fails."""
        found: list[bytes] = []
        while size > 0 and not self._error and self._refilled():
            try:
                found.append(self._stream.decompress(self._packed, size))
            except packed.ERRORS as error:
                self._error = str(error)
                break
            size -= len(found[-1])
            self._packed = self._stream.unconsumed_tail or self._stream.unused_data
            if (
                self._stream.eof and self._packed[:1] == GZIP_MAGIC[:1]
            ):  # several gzip members, one after another
                self._stream = packed.inflating()
        if self._error and not found:
            raise EOFError(self._error)
        return b"".join(found)

    def _refilled(self) -> bool:
        """Whether there is more to unpack."""
        if self._stream.eof and not self._packed:
            self._packed = self._file.read(_BLOCK)
            if self._packed[:2] == GZIP_MAGIC:
                self._stream = packed.inflating()
        elif not self._packed:
            self._packed = self._file.read(_BLOCK)
            if not self._packed:
                self._error = "compressed file ended before the end-of-stream marker was reached"
        return bool(self._packed) and not self._stream.eof

    def __enter__(self) -> Unpacked:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
