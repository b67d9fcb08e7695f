"""How several workers share the GPUs: which tests stay together, in which order, and which have a GPU alone.

All tests of one script are a group, so it is profiled once. Groups share a GPU: profiles on the same one
measure one after the other (``runner/device/alone.py``). Those that time it in another way have one alone. A
test that fails is not tried again; without ``--numprocesses`` it has the machine to itself.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import pytest

from tests.captures import record

HERE = Path(__file__).parent
VISIBLE = "CUDA_VISIBLE_DEVICES"
#: Most of a profile is imports, compiling and reading, which need the GPU little.
WORKERS_A_GPU = 3
CORES_A_WORKER = 4
#: Modules that have one GPU alone, the longest first. Their groups come last: what shares is not held up.
ALONE = ("test_inside_kernel", "test_probing", "test_gains", "test_python_time", "test_peaks", "test_alone")
#: It has all of them: ranks do not wait for other profiles. It is first, when nothing else runs yet.
ALL = "test_ranks"
#: Modules whose tests are about recorded scripts, and those whose tests have nothing in common.
SCRIPTS = frozenset({"test_lines", "test_captured_graphs"})
EACH = frozenset({"test_gains", "test_python_time"})
NAMES = frozenset({*record.scripts(), *record.GRAPHS})
_POLL_S = 0.1


def names() -> list[str]:
    """The GPUs that may be used, as CUDA_VISIBLE_DEVICES has them."""
    given = os.environ.get(VISIBLE)
    if given is not None:
        return [name for name in given.split(",") if name]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def workers(gpus: int, cores: int) -> int:
    """How many workers so many GPUs and cores are enough for."""
    return max(1, min(WORKERS_A_GPU * gpus, cores // CORES_A_WORKER))


def group(test: str) -> str:
    """What runs on one worker, one after the other: the tests of a script, or of a file.

    ``test``: pytest's name of it, where parameters stand behind it in brackets, a script's name first.
    """
    file, _, rest = test.partition("::")
    stem, _, parameters = Path(file).stem, *rest.partition("[")[1:]
    if stem in EACH:
        return test
    if stem not in SCRIPTS:
        return file
    return max(
        (name for name in NAMES if f"{parameters[:-1]}-".startswith(f"{name}-")), key=len, default=file
    )


def order(test: str) -> int:
    """Sorts groups: the one that has all GPUs (0), those that share (1), those that have one alone (2…).
    What is not of this folder shares, too."""
    file = Path(test.partition("::")[0])
    stem = file.stem if file.parent == Path("tests/gpu") else ""
    return 0 if stem == ALL else 2 + ALONE.index(stem) if stem in ALONE else 1


class Turns:
    """The turns of one worker on the GPUs; other workers have the same ``folder`` and ``gpus``.

    A GPU has two files that are locked: ``use``, shared or not, and ``gate``. Whoever has it alone, or waits
    for that, holds the gate; whoever shares it passes the gate. So none is overtaken for ever.
    """

    def __init__(self, folder: Path, gpus: Sequence[str], worker: int) -> None:
        self._folder, self._gpus, self._own = folder, gpus, worker % len(gpus)
        self._held: list[TextIO] = []

    def share(self) -> list[str]:
        """Wait for this worker's own GPU; returns its name, as the others do."""
        gate = self._locked(f"gate-{self._own}", fcntl.LOCK_EX)
        self._held = [self._locked(f"use-{self._own}", fcntl.LOCK_SH)]
        gate.close()
        return [self._gpus[self._own]]

    def alone(self) -> list[str]:
        """Wait for any GPU that no other worker uses."""
        count = len(self._gpus)
        while True:
            for number in ((self._own + more) % count for more in range(count)):
                try:
                    gate = self._locked(f"gate-{number}", fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                self._held = [gate, self._locked(f"use-{number}", fcntl.LOCK_EX)]
                return [self._gpus[number]]
            time.sleep(_POLL_S)

    def all(self) -> list[str]:
        """Wait for all of them."""
        numbers = range(len(self._gpus))
        self._held = [self._locked(f"{what}-{n}", fcntl.LOCK_EX) for what in ("gate", "use") for n in numbers]
        return list(self._gpus)

    def end(self) -> None:
        for file in self._held:
            file.close()
        self._held = []

    def _locked(self, name: str, how: int) -> TextIO:
        file = (self._folder / name).open("w")
        try:
            fcntl.flock(file, how)
        except BlockingIOError:
            file.close()
            raise
        return file


class Sharing:
    """On a worker: each group has its turn, and the processes that it starts see the GPUs of that."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._running = ""  # the group that has its turn

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-timeout: waiting is not the test's time
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        if HERE not in item.path.parents:
            return (yield)
        mine = group(item.nodeid)
        if self._running != mine:
            take = (self._turns.all, self._turns.share, self._turns.alone)[min(2, order(item.nodeid))]
            os.environ[VISIBLE] = ",".join(take())
            self._running = mine
        try:
            return (yield)
        finally:
            if nextitem is None or group(nextitem.nodeid) != mine:
                self._turns.end()
                self._running = ""
