"""Copies the trace that a run was made from into the run folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO

from warpline import packed
from warpline.trace.unpack import Text, is_packed, opened
from warpline.wire.run import TRACE

_BLOCK = 1 << 18  # bytes, so few that they stay in a processor's cache
_SMALL = 1 << 16  # bytes: smaller files are not compressed


def keep(path: Path, run: Path) -> None:
    """Copy the trace in ``path`` into the folder ``run``, gzipped if it is large. Raises OSError.

    A bare list of events is put into the object that the export and other readers expect.
    """
    bare = _is_bare(path)
    if not bare and is_packed(path):
        shutil.copyfile(path, run / f"{TRACE}.gz")
    elif not bare and path.stat().st_size < _SMALL:
        shutil.copyfile(path, run / TRACE)
    else:
        with opened(path) as source, packed.writing(run / f"{TRACE}.gz") as out:
            out.write(b'{"traceEvents":' if bare else b"")
            _copy(source, out)
            out.write(b"}" if bare else b"")


def _is_bare(path: Path) -> bool:
    with opened(path) as source:
        try:
            return source.read(64).lstrip()[:1] == b"["
        except EOFError:
            return False


def _copy(source: Text, out: IO[bytes]) -> None:
    try:
        while block := source.read(_BLOCK):
            out.write(block)
    except EOFError:  # a truncated gzip file: the reader reports it
        return
