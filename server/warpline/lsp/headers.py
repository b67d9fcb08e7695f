"""Headers as some clients write them: names in any case, spaces around the value, a bare line feed.

pygls knows ``Content-Length: 12`` to the letter, and waits for ever behind anything else.
"""

from __future__ import annotations

import asyncio
import re
from typing import IO

_LENGTH = re.compile(rb"^\s*content-length\s*:\s*(\d+)\s*$", re.IGNORECASE)


def plain(header: bytes) -> bytes:
    """A header line as pygls reads it; any other line stays as it is."""
    match = _LENGTH.match(header)
    return b"Content-Length: %s\r\n" % match[1] if match else header


class Pipe:
    """A binary stream that reads header lines as they are. Bodies are read by ``read`` and not touched."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        return plain(self._stream.readline())

    def read(self, size: int) -> bytes:
        return self._stream.read(size)


class Connection:
    """The same for a connection over TCP."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        return plain(await self._stream.readline())

    async def readexactly(self, size: int) -> bytes:
        return await self._stream.readexactly(size)
