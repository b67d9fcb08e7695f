"""Samples the lines of a running process with py-spy, and has it time its steps where it can."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections import Counter as Counts
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from warpline.capture import counters, probe, stepping
from warpline.capture.counters import Counter
from warpline.capture.mainthread import main_thread
from warpline.capture.stepping import Stepped
from warpline.model.problem import Problem
from warpline.wire.samples import py_spy, stacks

RATE = 100  # samples a second
START_S = 30.0  # allowed on top of the sampled time: to start, read the process's symbols and write
#: The start of a stack, after its process where there is one: ``thread (7): "MainThread"``.
_THREAD = re.compile(r'^(?:process [^;]*;)?thread \((\w+)\)(?:: "([^"]*)")?')
_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python3[.\d]*/|^<")


@dataclass(frozen=True, slots=True)
class Attached:
    total: int  # samples of the main thread, waiting included
    lines: tuple[tuple[str, int, int], ...]  # (file, line, samples) of the innermost user line, most first
    steps: tuple[Stepped, ...] = ()  # of each optimizer, the one that steps most first; Python 3.14 and later
    counters: tuple[Counter, ...] = ()  # local variables that count iterations, the fastest first


def attach(pid: int, seconds: float, *, read_only: bool = False) -> Attached:
    """Sample process ``pid`` for ``seconds``. Raises Problem if it is not Python or may not be inspected.

    With ``read_only`` nothing of ours runs in the process.
    """
    program = probe.sampler()
    if not program:
        raise Problem("py-spy is not installed in Warpline's environment")
    if not Path(f"/proc/{pid}").is_dir():
        raise Problem(f"there is no process {pid}")
    with tempfile.TemporaryDirectory() as folder:
        written, said, stepped = Path(folder, "raw"), Path(folder, "said"), Path(folder, "steps")
        command = py_spy(program, pid, RATE, str(written))
        command += ["--duration", str(max(1, round(seconds)))]
        if not read_only:
            stepping.ask(pid, seconds, stepped)
        end = time.monotonic() + seconds
        # Into a file: a pipe would fill with warnings, since it is not read while the process is looked at.
        with (
            said.open("wb") as errors,
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
            ) as records,
        ):
            try:
                looks = _looks(records, program, pid, seconds)
                records.wait(seconds + START_S)
            except subprocess.TimeoutExpired:
                raise Problem(f"py-spy did not end within {seconds + START_S:g} s", 1) from None
            finally:
                records.kill()
        if records.returncode or not written.is_file():
            raise Problem(_refusal(pid, said.read_text(encoding="utf-8", errors="replace")))
        # py-spy takes its samples at random times, so it ends a little early or late.
        time.sleep(max(0.0, end - time.monotonic()))
        found = _counted(written.read_text(encoding="utf-8", errors="replace"), pid)
        grown = (one for one in counters.counters(looks) if one.name in counters.counted(one.file))
        steps = () if read_only else stepping.stepped(stepped.read_text(encoding="utf-8"))
        return replace(found, steps=steps, counters=tuple(grown))


def _looks(
    records: subprocess.Popen[bytes], program: str, pid: int, seconds: float
) -> list[tuple[float, counters.Values]]:
    """Read the process's local variables repeatedly while ``records`` (py-spy) samples its lines."""
    found = []
    end = time.monotonic() + seconds
    for gap in cycle(counters.GAPS):
        found.append(counters.look(program, pid, START_S, _users))
        left = end - time.monotonic()
        if left <= 0:
            break
        try:
            records.wait(min(left, gap * seconds / counters.LOOKS))
        except subprocess.TimeoutExpired:
            continue
        break  # py-spy ended early: it could not sample
    return found


def _users(file: str) -> bool:
    return not _LIBRARY.search(file)


def _refusal(pid: int, said: str) -> str:
    if re.search(r"permission denied|not permitted", said, re.IGNORECASE):
        return (
            f"no permission to inspect process {pid} (ptrace): run as its user with "
            "kernel.yama.ptrace_scope=0, as root, or in a container with --cap-add=SYS_PTRACE"
        )
    if "find python version" in said:
        return f"process {pid} runs no Python that py-spy knows"
    lines = said.strip().splitlines()
    errors = [line for line in lines if line.startswith("Error")]
    why = (errors or lines or ["py-spy gave no reason"])[0]
    return f"process {pid} cannot be sampled: {why}"


def _counted(text: str, pid: int) -> Attached:
    """The lines of the main thread of ``pid`` in py-spy's raw format."""
    total, lines = 0, Counts[tuple[str, int]]()
    found = [(_THREAD.search(stack), places, count) for stack, places, count in stacks(text.splitlines())]
    main = main_thread({thread[1]: thread[2] or "" for thread, _, _ in found if thread is not None}, pid)
    for thread, places, count in found:
        if thread is None or thread[1] != main:
            continue
        total += count
        for file, line in places:
            if _users(file):
                lines[file, line] += count
                break
    return Attached(total, tuple((file, line, count) for (file, line), count in lines.most_common()))
