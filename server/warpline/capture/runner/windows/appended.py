"""Appends the trace of a later recording to that of an earlier one, as if nothing had been between them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from typing import BinaryIO

_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
#: The list's end, and what torch writes behind it: lines for what its profiler logged, the file's name, and
#: in older versions the time that all times are counted from.
_END = re.compile(rb'\s*\]\s*(?:,(?:\s*"\w+"\s*:[^\n]*)+\s*)?\}\s*\Z')
#: The whole microseconds of a time, or the number of an arrow. A string cannot contain this: its quotes are
#: escaped.
_MOVED = re.compile(rb'("(?:ts|id)": )(\d+)')
_ARROWS = 1 << 40  # torch numbers the arrows of each recording from 1: more than one recording has
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d+)')
_HEAD, _TAIL = 1 << 20, 1 << 16  # bytes in which the list begins and ends
_PIECE = 1 << 22


def append(path: str, later: str, earlier_us: int, part: int) -> int:
    """Put the events of the trace ``later`` behind those of ``path``, each ``earlier_us`` microseconds
    earlier, and remove ``later``. ``part``: how many recordings are before it. Returns the size of ``later``
    in bytes. Raises OSError; then ``path`` is as before."""
    with open(path, "rb") as out:
        end = _list_end(out)
        base = _base(out, end)
        out.seek(end)
        behind = out.read()
    try:
        with open(path, "r+b") as out, open(later, "rb") as more:
            out.seek(end)
            _copy(more, out, base, lambda met: _moved(met, earlier_us, part * _ARROWS))
            out.write(behind)
            size = more.seek(0, os.SEEK_END)
        os.remove(later)
    except OSError:
        os.remove(later)  # first, on a full disk
        os.truncate(path, end)
        with open(path, "ab") as out:
            out.write(behind)
        raise
    return size


def events_end(path: str) -> int:
    """The position behind the last event of the trace in ``path``. Raises OSError."""
    with open(path, "rb") as file:
        return _list_end(file)


def _moved(met: re.Match[bytes], earlier_us: int, arrows: int) -> bytes:
    by = arrows if met[1] == b'"id": ' else -earlier_us
    return met[1] + b"%d" % (int(met[2]) + by)


def _copy(more: BinaryIO, out: BinaryIO, base: bytes, moved: Callable[[re.Match[bytes]], bytes]) -> None:
    """Write a comma and the events of ``more`` to ``out``, whose times are counted from ``base``."""
    end = _list_end(more)
    more.seek(0)
    begin = _LIST.search(more.read(_HEAD))
    if begin is None or base != _base(more, end):
        raise OSError(errno.EINVAL, "torch's traces of one process differ in their form")
    out.write(b",")
    more.seek(begin.end())
    rest, last = b"", False
    while not last:
        left = end - more.tell()
        last = left <= _PIECE
        piece = rest + more.read(min(_PIECE, left))
        cut = len(piece) if last else max(0, piece.rfind(b"\n"))  # a time is on one line
        out.write(_MOVED.sub(moved, piece[:cut]))
        rest = piece[cut:]


def _list_end(file: BinaryIO) -> int:
    """The position behind the last event."""
    size = file.seek(0, os.SEEK_END)
    begin = file.seek(max(0, size - _TAIL))
    found = _END.search(file.read())
    if found is None:
        raise OSError(errno.EINVAL, "the trace has no end, the disk may be full")
    return begin + found.start()


def _base(file: BinaryIO, list_end: int) -> bytes:
    """What times are counted from; empty where the trace does not say."""
    file.seek(0)
    found = _BASE.search(file.read(min(_HEAD, list_end)))
    if found is None:
        file.seek(list_end)
        found = _BASE.search(file.read())
    return found[1] if found is not None else b""
