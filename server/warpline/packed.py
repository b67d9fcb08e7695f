"""gzip, by ISA-L where that is installed: the same format in less than half the time, see
``benchmarks/packing.py``.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, Any

_gzip: Any = gzip
_zlib: Any = zlib
_level = 1  # half the time of zlib's level 6, and a trace comes out a third larger
try:
    from isal import igzip, isal_zlib
except ImportError:  # this kind of processor has none
    pass
else:
    _gzip, _zlib = igzip, isal_zlib
    _level = 2  # of 0 to 3: as quick as the lower ones, a fifth of the time of 3

_GZIP = 16 + zlib.MAX_WBITS  # window bits: with gzip's header and checksum
#: What unpacking raises where a file is damaged.
ERRORS: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error, _zlib.error)


def writing(path: Path) -> IO[bytes]:
    """A new packed file."""
    file: IO[bytes] = _gzip.open(path, "wb", _level)
    return file


def inflating() -> Any:
    """What unpacks one stream, with the methods and fields of ``zlib.decompressobj()``."""
    return _zlib.decompressobj(_GZIP)


def unpacked(data: bytes) -> bytes:
    """Raises one of :data:`ERRORS`."""
    return bytes(_gzip.decompress(data))
