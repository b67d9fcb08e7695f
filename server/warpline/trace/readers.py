"""Processes that decode parts of traces, each in the order in which it is asked for them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from warpline.trace import decode
from warpline.trace.decode import Chrome, Part, Unclean
from warpline.trace.events import Tables
from warpline.trace.sent import received, sent

END_S = 10.0  # for a process that was killed to be gone
#: OpenBLAS would start a thread for every core. glibc would return each piece's memory to the system, and
#: touching new memory takes a tenth of the time.
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(16 << 20),
}
_LENGTH = 8  # bytes before each answer
#: It imports from our own modules' folders, and never from the working folder.
_CHILD = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from warpline.trace.readers import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)


class Reader:
    """One process. It ends by itself when this one ends, and at a part that is not clean.

    It waits with an answer until it is read, so ask for one part more than it works on, and no further.
    """

    def __init__(self) -> None:
        """Starts it. Raises OSError."""
        own = str(Path(__file__).resolve().parents[2])
        # Scripts put paths of pathlib there, which Python passes over.
        others = (one for one in sys.path if isinstance(one, str) and one not in ("", str(Path.cwd())))
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CHILD, json.dumps([own, *others])],
            env={**os.environ, **_ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, path: Path, part: Part) -> None:
        """Have a part decoded. Raises OSError if the process has ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(asked(path, part))
        self.process.stdin.flush()

    def answer(self) -> tuple[Tables, Chrome | None]:
        """The events of the next part that was asked for, and of the last part the rest of the file.

        Raises Unclean if the process has ended, or something that msgspec raises where the answer begins with
        what another module printed.
        """
        assert self.process.stdout is not None
        return answered(self.process.stdout)

    def kill(self) -> None:
        """End the process; whoever waits for its answer gets none."""
        self.process.kill()

    def end(self) -> None:
        """The same, and wait until it is gone."""
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was asked for and never read
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the kernel: a dead network disk
            self.process.wait(END_S)


def asked(path: Path, part: Part) -> bytes:
    """The line that asks a process for a part."""
    return json.dumps([str(path), part]).encode() + b"\n"


def serve(lines: IO[bytes], out: IO[bytes]) -> None:
    """Runs in the process: decode what each of ``lines`` asks for, and write its tables to ``out``. Ends with
    the lines, or at a part that is not clean."""
    with decode.collector_paused(), contextlib.suppress(Unclean, OSError):
        for line in lines:
            path, part = json.loads(line)
            tables = Tables()
            chrome = decode.decode_cleanly(Path(path), Part(*part), tables.take)
            data = sent(tables, chrome)
            out.write(len(data).to_bytes(_LENGTH, "little"))
            out.write(data)
            out.flush()


def answered(file: IO[bytes]) -> tuple[Tables, Chrome | None]:
    """The next answer in ``file``. Raises Unclean if there is none, or only a part of it."""
    length = int.from_bytes(file.read(_LENGTH), "little")
    data = file.read(length) if length else b""
    if not length or len(data) < length:
        raise Unclean("a process ended")
    return received(data)
