"""A measurement ends in its budget, whatever the script does. All of ``benchmarks/endings.py`` takes an hour;
these are the kinds that once hung, on as many cores as are pretended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment
from warpline.capture import tree

ROOT = Path(__file__).resolve().parent.parent.parent
BUDGET_S = 10.0
#: Until the end of the child is seen here, on a machine that is busy.
NOTICED_S = 3.0
#: Script -> cores.
CASES = {"8 steps": 16, "lock before torch": 4, "changed sleeps in its first step": 2, "never steps": 1}


@dataclass(frozen=True)
class Ending:
    status: int
    out: str
    err: str
    ended: float  # on the clock of ``time.monotonic()``
    left: list[str]  # ids of processes that it has left behind


def ending(name: str, cores: int) -> Ending:
    """Of the measurement of the script ``name``."""
    words = [sys.executable, str(ROOT / "benchmarks/endings.py"), "--one", name]
    words += ["--cores", str(cores), "--budget", str(BUDGET_S)]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), "OMP_NUM_THREADS": "1"},
    )
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    ended = time.monotonic()
    marked = f"{tree.MARK}={process.pid}-".encode()
    left = []
    for entry in tree.processes():
        try:
            left += [entry.name] * (marked in (entry / "environ").read_bytes())
        except OSError:
            continue
    return Ending(process.returncode, out, err, ended, left)


@pytest.fixture(scope="module")
def endings() -> Iterator[dict[str, Future[Ending]]]:
    """All at once: they mostly wait, and each has its own budget."""
    with ThreadPoolExecutor(len(CASES)) as pool:
        yield {name: pool.submit(ending, name, cores) for name, cores in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_it_ends_in_its_budget_and_leaves_nothing(name: str, endings: dict[str, Future[Ending]]) -> None:
    found = endings[name].result()
    assert found.status == 0, found.err
    told = json.loads(found.out)
    assert told["said"]
    # From where the child's budget begins: how long Python took to start is no matter.
    assert found.ended - told["began"] <= 1.1 * BUDGET_S + NOTICED_S
    assert not found.left
