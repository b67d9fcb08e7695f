"""Reads a large uncompressed trace with several processes; each decodes parts of some megabytes.

The result is the same as from one process. This works for intact traces in Kineto's form only. If any part is
cut or malformed, one process reads the whole trace, and handles the damage.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from warpline.model.problem import Problem
from warpline.trace import decode, scan
from warpline.trace.decode import Chrome, Damage, Part, Unclean
from warpline.trace.events import Tables
from warpline.trace.sent import received, sent
from warpline.trace.unpack import is_packed
from warpline.wire.processors import cores

#: Bytes of a part: so few that the processes end at about the same time, and little waits to be merged.
PART = 24 << 20
SMALLEST = 4 * PART  # bytes of a file. Starting a process takes 0.17 s, in which one reads 40 MB
MOST_PROCESSES = 8  # with more, merging takes longer than reading
#: Time limit for the children: ``LIMIT_S`` seconds, and one more for every ``SLOWEST`` bytes of the file. A
#: slow disk takes far less.
LIMIT_S, SLOWEST = 60.0, 1 << 20
END_S = 10.0  # for a child that was killed to be gone
#: Of a child. OpenBLAS would start a thread for every core. glibc would return each piece's memory to the
#: system, and touching new memory takes a tenth of a child's time.
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(16 << 20),
}
_WINDOW = 1 << 16  # bytes in which the end of an event is looked for
_LENGTH = 8  # bytes before each answer
#: The child imports from our own modules' folders, and never from the working folder.
_CHILD = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from warpline.trace.ranges import answer; answer(sys.argv[2], json.loads(sys.argv[3]))"
)


def tables_of(path: Path, processes: int | None = None) -> tuple[Tables, Chrome, list[str]]:
    """The events of a trace, the rest of the file, and notes on parts that could not be read.

    Raises Problem. ``processes``: how many may read it at once; None: one for each core.
    """
    found = together(path, cores() if processes is None else processes)
    if found is not None:
        return *found, Damage(left_out=found[0].left_out).notes()
    tables = Tables()
    chrome, damage = decode.decode(path, tables.take)
    damage.left_out += tables.left_out
    return tables, chrome, damage.notes()


def together(path: Path, processes: int) -> tuple[Tables, Chrome] | None:
    """The events of the trace in ``path`` and the rest of the file, read by up to ``processes`` processes;
    None if one process has to read all of it."""
    try:
        if processes < 2 or not sys.executable or path.stat().st_size < SMALLEST or is_packed(path):
            return None
        parts = split(path)
        if len(parts) < 2:
            return None
        with _children(path, parts, min(processes, MOST_PROCESSES, len(parts))) as children:
            return merged([children[at % len(children)] for at in range(len(parts))])
    except (OSError, Problem, Unclean, msgspec.MsgspecError, MemoryError, OverflowError):
        return None  # the last three: a child's output begins with what another module printed


def split(path: Path) -> list[Part]:
    """Parts of about ``PART`` bytes, which end where events seem to end; [] if no such ends are found."""
    head, size = decode.head_of(path), path.stat().st_size
    bounds: list[int] = [len(head)]
    with path.open("rb") as file:
        if file.read(len(head)) != head:  # a bare list of events
            return []
        for at in range(len(head) + PART, size - PART // 2, PART):
            file.seek(at)
            found = scan.first_end(file.read(_WINDOW))
            if found is None:
                return []
            bounds += [at + found[0], at + found[1]]
    begins, ends = bounds[::2], [*bounds[1::2], size]
    return [
        Part(begin, end, len(head) if end == size else 0) for begin, end in zip(begins, ends, strict=True)
    ]


@contextmanager
def _children(path: Path, parts: Sequence[Part], count: int) -> Iterator[list[IO[bytes]]]:
    """Start ``count`` processes. The output of each has the answers for every ``count``-th part, in order.
    They are killed when the block ends, and at the latest after the time limit."""
    own = str(Path(__file__).resolve().parents[2])
    others = (one for one in sys.path if isinstance(one, str) and one not in ("", str(Path.cwd())))
    folders = json.dumps([own, *others])  # scripts put paths of pathlib there, which Python passes over
    environment = {**os.environ, **_ENVIRONMENT}
    started: list[subprocess.Popen[bytes]] = []

    def end() -> None:
        for child in started:
            child.kill()

    limit = threading.Timer(LIMIT_S + path.stat().st_size / SLOWEST, end)
    limit.daemon = True
    try:
        for first in range(count):
            mine = json.dumps(parts[first::count])
            command = [sys.executable, "-I", "-c", _CHILD, folders, str(path), mine]
            started.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            )
        limit.start()
        yield [child.stdout for child in started if child.stdout is not None]
    finally:
        limit.cancel()
        end()
        for child in started:
            if child.stdout is not None:
                child.stdout.close()
            with contextlib.suppress(
                subprocess.TimeoutExpired
            ):  # it hangs in the kernel: a dead network disk
                child.wait(END_S)


def answer(path: str, parts: Sequence[Sequence[int]], out: IO[bytes] | None = None) -> None:
    """Runs in a child process: decode ``parts`` (fields of :class:`Part`) and write the tables of each to
    ``out``, which is standard output by default. Ends early if a part is not clean."""
    out = out or sys.stdout.buffer
    with decode.collector_paused(), contextlib.suppress(Unclean, OSError):
        for part in parts:
            tables = Tables()
            chrome = decode.decode_cleanly(Path(path), Part(*part), tables.take)
            data = sent(tables, chrome)
            out.write(len(data).to_bytes(_LENGTH, "little"))
            out.write(data)
            out.flush()


def merged(answers: Sequence[IO[bytes]]) -> tuple[Tables, Chrome]:
    """Merge the tables of all parts. ``answers``: the files to read the answers from. Raises Unclean if one
    is missing."""
    whole, rest = Tables(), Chrome()
    for file in answers:
        length = int.from_bytes(file.read(_LENGTH), "little")
        data = file.read(length) if length else b""
        if not length or len(data) < length:
            raise Unclean("a process ended")
        tables, chrome = received(data)
        whole.extend(tables)
        if sum(map(len, whole.of.values())) > decode.MOST_EVENTS:
            raise Unclean("too many events")
        rest = chrome or rest
    return whole, rest
