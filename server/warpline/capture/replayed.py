"""A script's standard input, the same for each of its runs: what comes through a pipe is kept."""

from __future__ import annotations

import contextlib
import os
import re
import select
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

#: Of a piped input: with more than this it is no longer kept, and a second run reads what is left of it.
MOST_BYTES = 256_000_000
PIECE = 65536
#: What is written somewhere in a script that reads its standard input.
READS = re.compile(
    rb"\bstdin\b|\binput\s*\(|\bfileinput\b|\bFileType\b|/dev/fd/0|\b(?:open|read|fdopen)\s*\(\s*0\b"
)
MOST_FILES = 200  # searched for them; a script in a folder with more may read its input
END_S = 10.0  # for the thread that copies: it waits for nothing but the disk


class Input:
    """The descriptor ``stdin`` (None: an empty input), read again by each run. ``close`` it in the end.

    A file is read again from where it stood. Of a pipe or a socket a copy is kept in a file without a name,
    and a run reads through a pipe of ours, which is filled only as fast as it reads. A terminal is handed
    on as it is. So is a pipe if nothing in ``folder`` (the script's; None: not known) may read it: it may
    hold the list of a shell's ``while read`` around us, and nothing is taken from it.
    """

    def __init__(self, stdin: int | None, folder: Path | None = None) -> None:
        self.stdin = stdin
        self.begin = position(stdin)
        self.kept: IO[bytes] | None = None
        self.size = 0
        self.again = stdin is None or self.begin is not None  # whether the next run reads all of it
        if stdin is not None and _is_piped(stdin) and (folder is None or may_read(folder)):
            with contextlib.suppress(OSError):  # no folder for it can be written: a run reads the pipe itself
                self.kept = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # ``close``
                self.again = True

    def close(self) -> None:
        """Throw the copy away."""
        if self.kept is not None:
            self.kept.close()

    @contextlib.contextmanager
    def run(self) -> Iterator[int | None]:
        """The descriptor to hand to one run."""
        if self.kept is None or self.stdin is None:
            if self.stdin is not None and self.begin is not None:
                os.lseek(self.stdin, self.begin, os.SEEK_SET)
            yield self.stdin
            return
        read, write = os.pipe()
        ended, end = os.pipe()
        thread = threading.Thread(target=self._copy, args=(self.stdin, write, ended, self.kept), daemon=True)
        thread.start()
        try:
            yield read
        finally:
            os.close(end)
            os.close(read)
            thread.join(END_S)
            if not thread.is_alive():  # its numbers must not be used again before
                os.close(ended)

    def _copy(self, stdin: int, write: int, ended: int, kept: IO[bytes]) -> None:
        try:
            os.set_blocking(write, False)
            at = 0
            while self.again and at < self.size:
                piece = os.pread(kept.fileno(), PIECE, at)
                if not piece or not _written(write, piece, ended):
                    return
                at += len(piece)
            while _ready(stdin, select.POLLIN, ended):
                piece = os.read(stdin, PIECE)
                if not piece:
                    return
                self._keep(piece, kept)
                if not _written(write, piece, ended):
                    return
        except OSError:
            pass  # the run has closed its input, or ours is gone
        finally:
            os.close(write)

    def _keep(self, piece: bytes, kept: IO[bytes]) -> None:
        if not self.again:
            return
        try:
            if self.size + len(piece) > MOST_BYTES:
                raise OSError("too much")
            if os.pwrite(kept.fileno(), piece, self.size) < len(piece):
                raise OSError("the disk is full")
            self.size += len(piece)
        except OSError:  # or no room
            self.again = False
            with contextlib.suppress(OSError):
                os.ftruncate(kept.fileno(), 0)


def may_read(folder: Path) -> bool:
    """Whether a script in this folder, or a module beside it, may read its standard input. Told by words in
    the sources: a library that does so on its own is not seen."""
    try:
        for count, path in enumerate(folder.glob("*.py")):
            if count >= MOST_FILES or READS.search(path.read_bytes()):
                return True
    except OSError:
        return True
    return False


def position(stdin: int | None) -> int | None:
    """How far an input has been read; None where that cannot be set: a terminal, a pipe, no input."""
    try:
        return None if stdin is None else os.lseek(stdin, 0, os.SEEK_CUR)
    except OSError:
        return None


def _is_piped(stdin: int) -> bool:
    try:
        mode = os.fstat(stdin).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _written(write: int, piece: bytes, ended: int) -> bool:
    """False: the run has ended first."""
    while piece:
        if not _ready(write, select.POLLOUT, ended):
            return False
        piece = piece[os.write(write, piece) :]
    return True


def _ready(descriptor: int, what: int, ended: int) -> bool:
    """Wait until ``descriptor`` can be read or written. False: the run has ended first."""
    poll = select.poll()
    poll.register(descriptor, what)
    poll.register(ended, select.POLLIN)
    return ended not in dict(poll.poll())
