"""Processes that decode parts of traces, each in the order in which it is asked for them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import IO, NoReturn

from warpline.trace import decode, heap
from warpline.trace.decode import Chrome, Part, Unclean
from warpline.trace.events import Tables
from warpline.trace.sent import received, sent

END_S = 10.0  # for a process that was killed to be gone
#: OpenBLAS would start a thread for every core.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", **heap.ENVIRONMENT}
_LENGTH = 8  # bytes before each answer
_OPEN = Path("/proc/self/fd")  # descriptors of this process
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
        self.process = Forked() if may_fork() else _spawned()

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


def _spawned() -> subprocess.Popen[bytes]:
    own = str(Path(__file__).resolve().parents[2])
    # Scripts put paths of pathlib there, which Python passes over.
    others = (one for one in sys.path if isinstance(one, str) and one not in ("", str(Path.cwd())))
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _CHILD, json.dumps([own, *others])],
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def may_fork() -> bool:
    """Whether a copy of this process can read: where no other thread may hold a lock, and nothing of the
    user's was imported. That takes a few milliseconds; another process needs 0.17 s for its imports."""
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return sys.platform.startswith("linux") and alone and sys.gettrace() is None and _OPEN.is_dir()


class Forked:
    """A copy of this process that reads, with what is used here of ``subprocess.Popen``."""

    def __init__(self) -> None:
        """Raises OSError."""
        asked_in, asked_out = os.pipe()
        answer_in, answer_out = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 counts OpenBLAS's threads, which hold no lock while nothing is computed.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            _read(asked_in, answer_out)
        os.close(asked_in)
        os.close(answer_out)
        self.stdin: IO[bytes] = os.fdopen(asked_out, "wb")
        self.stdout: IO[bytes] = os.fdopen(answer_in, "rb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait until it is gone, at most so long."""
        late = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < late:
            time.sleep(0.001)


def _read(lines: int, out: int) -> NoReturn:
    """Runs in the copy: nothing of this process but ``serve`` goes on there."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process hears it too, and ends this one
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        # The pipes of the readers before it, too: none ends as long as somebody could ask it.
        for descriptor in [int(one.name) for one in _OPEN.iterdir()]:
            if descriptor > 2 and descriptor not in (lines, out):
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        heap.keep_freed()
        serve(os.fdopen(lines, "rb"), os.fdopen(out, "wb"))
    finally:
        os._exit(0)


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
