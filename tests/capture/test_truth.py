"""Times of lines against a stopwatch that shares nothing with us (benchmarks/truth.py, in small)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from benchmarks import truth

#: Wide enough for a machine that others use, and narrow enough for what was wrong once: large operators
#: at 1.8 times their time, loops at 2.0 to 3.6, tiny operators at 0.6.
OF_LINE, OF_STEP = 0.35, 0.06


@pytest.mark.parametrize("script", ["seen/sections", "seen/loader", "seen/recurrent"])
def test_lines_take_what_the_stopwatch_says(script: str) -> None:
    options = argparse.Namespace(python=sys.executable, rounds=1, threads=1, keep=None, processor=False)
    found = truth.rows(Path(truth.SCRIPTS, f"{script}.py"), options)
    assert len(found) >= 3
    off = [row for row in found if row.of_line > OF_LINE and row.of_step > OF_STEP]
    assert not off, "\n".join(truth.table(off))
