"""On a GPU: the slow and the fixed version of each case in turn, and how much faster the fixed one is."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from pathlib import Path

import pytest
import torch

from docs.print_reports import SAMPLES
from tests.conftest import ROOT
from tests.gpu.claims import PROMISED
from warpline.measure.candidate import Candidate
from warpline.measure.contest import measure
from warpline.measure.pairs import Limits
from warpline.wire.run import Request


@pytest.mark.parametrize("name", PROMISED)
def test_the_fixed_version_gains_what_is_promised(name: str, device: str) -> None:
    slow, fixed = (ROOT / "examples" / name / f"{version}.py" for version in ("slow", "fixed"))
    request = Request(target=str(slow), cwd=str(slow.parent), python=sys.executable)
    candidate = Candidate((name,), "fixed.py", {str(slow): fixed.read_text()}, work=SAMPLES.get(name, 1.0))
    outcome = measure(request, candidate, Limits(first=2, rounds=2))
    assert outcome.measured is not None, outcome.reason
    seen = outcome.measured
    print(
        f"{name}: slow {outcome.baseline_step_ms:.2f} ms a step, fixed {seen.speedup:.2f} times as fast "
        f"({seen.low:.2f} to {seen.high:.2f}), loss drift {seen.loss_drift}"
    )
    if "WARPLINE_RECORDINGS" in os.environ:
        keep(
            name,
            {
                "slow_step_ms": outcome.baseline_step_ms,
                "speedup": seen.speedup,
                "low": seen.low,
                "high": seen.high,
                "loss_drift": seen.loss_drift,
                "device": device,
                "torch": torch.__version__,
            },
        )
    assert seen.speedup >= PROMISED[name]


def keep(name: str, found: dict[str, float | str | None]) -> None:
    """Add it to gains.json beside the recorded runs, from which the READMEs of the examples are printed."""
    file = Path(os.environ["WARPLINE_RECORDINGS"], "gains.json")
    with file.open("a+") as both:  # other workers add to it too
        fcntl.flock(both, fcntl.LOCK_EX)
        both.seek(0)
        known = json.loads(both.read() or "{}")
        both.truncate(0)
        both.write(json.dumps({**known, name: found}, indent=1, sort_keys=True) + "\n")
