"""On a GPU: the slow and the fixed version of each case in turn, and how much faster the fixed one is."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT
from warpline.measure import Candidate, measure
from warpline.measure.contest import Limits
from warpline.model.run import Request

#: Times as fast per sample as the slow version, at least; and samples a step of the fixed one, of the
#: slow one's.
PROMISED = {
    "loader-without-workers": (2.5, 1.0),
    "fp32-bert": (3.0, 1.0),
    "transpose-kernel": (7.0, 1.0),
    "layernorm-finetune": (1.4, 4.0),
}


@pytest.mark.parametrize("name", PROMISED)
def test_the_fixed_version_gains_what_is_promised(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    least, work = PROMISED[name]
    slow, fixed = (ROOT / "examples" / name / f"{version}.py" for version in ("slow", "fixed"))
    request = Request(target=str(slow), cwd=str(slow.parent), python=sys.executable)
    candidate = Candidate((name,), "fixed.py", {str(slow): fixed.read_text()}, work=work)
    outcome = measure(request, candidate, Limits(first=2, rounds=2))
    assert outcome.measured is not None, outcome.reason
    with capsys.disabled():
        seen = outcome.measured
        print(
            f"{name}: slow {outcome.baseline_step_ms:.2f} ms a step, fixed {seen.speedup:.2f} times as fast "
            f"({seen.low:.2f} to {seen.high:.2f}), loss drift {seen.loss_drift}"
        )
    assert seen.speedup >= least
