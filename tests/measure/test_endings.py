"""A measurement ends in its budget, whatever the script does. All of ``benchmarks/endings.py`` takes an hour;
these are the kinds that once hung, on as many cores as are pretended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment
from warpline.capture import tree

ROOT = Path(__file__).resolve().parent.parent.parent
BUDGET_S = 20.0
#: Of the child itself: Python's start and our imports, on a machine that is busy.
STARTUP_S = 4.0


@pytest.mark.parametrize(
    ("name", "cores"),
    [("8 steps", 16), ("lock before torch", 4), ("changed sleeps in its first step", 2), ("never steps", 1)],
)
def test_it_ends_in_its_budget_and_leaves_nothing(name: str, cores: int) -> None:
    words = [sys.executable, str(ROOT / "benchmarks/endings.py"), "--one", name]
    words += ["--cores", str(cores), "--budget", str(BUDGET_S)]
    began = time.monotonic()
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), "OMP_NUM_THREADS": "1"},
    )
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert time.monotonic() - began <= 1.1 * BUDGET_S + STARTUP_S
    assert json.loads(out)["said"]
    marked = f"{tree.MARK}={process.pid}-".encode()
    left = []
    for entry in tree.processes():
        try:
            left += [entry.name] * (marked in (entry / "environ").read_bytes())
        except OSError:
            continue
    assert not left
