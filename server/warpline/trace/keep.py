"""The trace that a run was made of, copied into the run folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO

from warpline import packed
from warpline.trace.unpack import Text, is_packed, opened
from warpline.wire.run import TRACE

_BLOCK = 1 << 20  # bytes
_SMALL = 1 << 16  # bytes: not worth packing


def keep(path: Path, run: Path) -> None:
    """Leave the trace in ``path`` in the folder ``run``, packed where it is large. Raises OSError.

    A list of events alone gets the object around it that export and other readers expect.
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
    except EOFError:  # a packed file that is cut: the reader says so
        return
