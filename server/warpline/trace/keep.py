"""The trace that a run was made of, copied into the run folder."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from warpline.trace.unpack import Text, is_packed, opened
from warpline.wire.run import TRACE

#: Half the time of level 6, and a trace comes out a third larger (``benchmarks/packing.py``).
_LEVEL = 1
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
        with opened(path) as source, gzip.open(run / f"{TRACE}.gz", "wb", _LEVEL) as packed:
            packed.write(b'{"traceEvents":' if bare else b"")
            _copy(source, packed)
            packed.write(b"}" if bare else b"")


def _is_bare(path: Path) -> bool:
    with opened(path) as source:
        try:
            return source.read(64).lstrip()[:1] == b"["
        except EOFError:
            return False


def _copy(source: Text, packed: gzip.GzipFile) -> None:
    try:
        while block := source.read(_BLOCK):
            packed.write(block)
    except EOFError:  # a packed file that is cut: the reader says so
        return
