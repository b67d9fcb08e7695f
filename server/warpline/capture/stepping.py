"""When the optimizers of a running process step. The process writes it down itself: since Python 3.14 another
process may have it run a file (PEP 768). Older ones are only read (``counters``)."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_WATCH = Path(__file__).with_name("runner") / "attached.py"
_INTERPRETER = re.compile(r"/python3\.(\d+)t?$")
_LIMIT_S = 10.0
_OUTSIDE = 0.2  # of the time watched
_ASK = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimizer of the class ``name`` stepped ``turns`` times after its first step: every ``turn_ms`` on
    average, and at most ``longest_ms`` after the step before."""

    name: str
    turns: int
    turn_ms: float
    longest_ms: float

    def fills(self, seconds: float) -> bool:
        """Whether it stepped all the time while it was watched for ``seconds``. It did not if the script was
        still starting, or was evaluating. A step may be under way at the start, and one at the end."""
        idle_ms = 1000 * seconds - self.turns * self.turn_ms
        return idle_ms <= max(2 * self.longest_ms, 1000 * _OUTSIDE * seconds)


def ask(pid: int, seconds: float, written: Path) -> None:
    """Have process ``pid`` write the steps of its optimizers into ``written`` for ``seconds``. They begin
    when it next runs Python, not now: on a busy machine, asking alone can take longer.

    The file stays empty where it cannot be asked: an older Python, another user's process, one that sees
    other files, or one that forbids it (``PYTHON_DISABLE_REMOTE_DEBUG``).
    """
    written.touch()
    if not _may_ask(Path("/proc", str(pid))):
        return
    # Not beside ``written``, which may be gone before the process next runs Python and reads this. It would
    # complain on its own output. It removes the file itself.
    number, name = tempfile.mkstemp(prefix="warpline-attach-", suffix=".py")
    os.close(number)
    script = Path(name)
    script.write_text(watcher(script, written, seconds), encoding="utf-8")
    # By the process's own interpreter: it has to be the same version.
    command = [f"/proc/{pid}/exe", "-I", "-S", "-c", _ASK, str(pid), name]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=True)
    except subprocess.TimeoutExpired:
        pass  # it may have been asked. Without the file, whoever makes one of that name would have theirs run
    except (OSError, subprocess.SubprocessError):
        script.unlink(missing_ok=True)


def watcher(script: Path, written: Path, seconds: float) -> str:
    """What the process runs: it removes the file ``script`` with this text, and watches for ``seconds``.
    Nothing is said where that fails (another torch, ``written`` is gone): it would be on the process's own
    output."""
    run = f"""
try:
    os.unlink({str(script)!r})
    watch({str(written)!r}, {seconds!r})
except Exception:
    pass
"""
    return _WATCH.read_text(encoding="utf-8") + run


def _may_ask(process: Path) -> bool:
    try:
        version = _INTERPRETER.search(str((process / "exe").readlink()))
        same_files = (process / "ns/mnt").samefile("/proc/self/ns/mnt")
        same_user = process.stat().st_uid == os.geteuid()
    except OSError:
        return False
    return version is not None and int(version[1]) >= 14 and same_files and same_user


def stepped(text: str) -> tuple[Stepped, ...]:
    """What the lines of ``runner.attached.watch`` say of each optimizer with at least two steps, the one with
    most steps first."""
    times: dict[tuple[str, str], list[float]] = {}
    for line in text.splitlines():
        at, number, name = line.split(" ", 2)
        times.setdefault((number, name), []).append(float(at))
    found = []
    for (_, name), begins in times.items():
        gaps_ms = [1000 * (after - before) for before, after in pairwise(begins)]
        if gaps_ms:
            found.append(Stepped(name, len(gaps_ms), sum(gaps_ms) / len(gaps_ms), max(gaps_ms)))
    return tuple(sorted(found, key=lambda one: -one.turns))
