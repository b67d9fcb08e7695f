"""Times replacement operators in a child of the script's interpreter. No user code runs in it."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import msgspec

from warpline.capture import interpreter, signals, tree
from warpline.model.problem import Problem
from warpline.wire.probing import Answer, Probed, Question, QuestionBatch, builds
from warpline.wire.run import Request

_START = Path(__file__).parent / "runner" / "probing" / "start.py"
#: Freed memory stays in the child, also tensors of 32 MB and more, which glibc would map again each time.
#: What new pages cost depends on what else lies in the heap, so a trial has none, and those of the step are
#: counted there (``wire.facts.Memory``).
_KEPT = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_MAX_": "0"}
#: Seconds for the child to import torch and initialize the device, and between two signs of it while another
#: profile has the device. After that ``seconds`` of ``probe`` begin.
START_S = 30.0
#: Seconds on top of that, so that the trial that is running can end.
LATE_S = 2.0
#: Compiling and cuDNN's search may take so many times the seconds of all other trials: 30 by default.
COMPILING = 3.0
#: And that up to so many times where other processes use the cores: a trial that took 11 s took 52 then.
MOST_BUSY = 2.0


def probe(
    request: Request,
    questions: Sequence[Question],
    seconds: float,
    *,
    device: str,
    threads: int | None,
    cancelled: threading.Event | None = None,
    on_answer: Callable[[int, int], None] | None = None,
    until: float = math.inf,
) -> Probed:
    """The answers that arrive within ``seconds`` after torch is imported and the device is free, those of
    what is compiled or searched for last and within ``COMPILING`` times as long on top, or longer on a busy
    machine.

    ``on_answer(done, of)`` reports progress. An answer that does not arrive, for any reason, is left out; so
    are those that would come after ``until`` (``time.monotonic()``).
    Raises only KeyboardInterrupt, and Problem if ``cancelled`` was set. The child has ended on return.
    """
    began = time.monotonic()
    answers: list[Answer] = []
    note, mark = "", f"{os.getpid()}-probing-{time.monotonic_ns()}"
    compiling = COMPILING * seconds * _busy() if any(builds(one, device) for one in questions) else 0.0
    room = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # a compiler may still be writing
    with tempfile.TemporaryFile() as asked, room as empty:
        asked.write(msgspec.json.encode(QuestionBatch(device, threads, seconds, compiling, tuple(questions))))
        asked.seek(0)
        with signals.held_back():
            try:
                child = subprocess.Popen(
                    [interpreter.find(request), str(_START)],
                    cwd=empty,  # so that no file of the user's can be imported
                    env={**os.environ, **request.environment, **_KEPT, **_caches(empty), tree.MARK: mark},
                    stdin=asked,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except (OSError, Problem) as error:
                return Probed(left=len(questions), note=f"replacements could not be tried: {error}")
        try:
            assert child.stdout is not None
            lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            threading.Thread(target=_listen, args=(child.stdout, lines), daemon=True).start()
            late = began + START_S
            while time.monotonic() < min(late, until):
                if cancelled is not None and cancelled.is_set():
                    raise Problem("cancelled", 130)
                try:
                    line = lines.get(timeout=0.1)
                except queue.Empty:
                    continue
                if line is None:
                    break
                if line == b"{}\n":  # torch is imported; again while another profile has the device
                    late = time.monotonic() + seconds + compiling + LATE_S
                    continue
                with contextlib.suppress(msgspec.MsgspecError):
                    answers.append(msgspec.json.decode(line, type=Answer))
                if on_answer is not None:
                    on_answer(len(answers), len(questions))
        finally:
            _end(child, mark)
    if not answers:
        note = "replacements could not be tried: the interpreter gave no answer in time"
    return Probed(tuple(answers), time.monotonic() - began, len(questions) - len(answers), note)


def _busy() -> float:
    """How many times as long as on an idle machine a process takes, by the load of the last minute: 1 to
    ``MOST_BUSY``."""
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # not on Windows
        return 1.0
    return min(MOST_BUSY, max(1.0, load / (os.cpu_count() or 1)))


def _listen(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in stream:
            lines.put(line)
    lines.put(None)


def _caches(folder: str) -> dict[str, str]:
    """Keeps what is compiled in ``folder``, with what compilers that are killed leave: nothing else is
    written."""
    names = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
    return {"TMPDIR": folder, **{name: f"{folder}/{own}" for name, own in names.items()}}


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    """Kill the child and what it has started: torch compiles in processes of its own."""
    tree.kill(child, mark)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(LATE_S)
    # The garbage collector closes our end of the pipe once the listener has read to its end.
