"""The GPU runs of tests/captures, read as everywhere: what `make gpu-test` asks of fresh ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from docs.print_reports import SAMPLES
from tests.captures.record import APART, GRAPHS, scripts
from tests.conftest import CAPTURES
from tests.gpu.apart import CLAIMS, Claim
from tests.gpu.claims import *  # noqa: F403  # the claims are the tests here
from tests.gpu.claims import PROMISED
from warpline import pipeline


@pytest.fixture(scope="session")
def run_of(recorded: Callable[[str], Path]) -> Callable[[str], Path]:
    return recorded


KEPT = {path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz")}


def test_every_script_has_its_recording() -> None:
    assert set(scripts()) | set(APART) | set(GRAPHS) == KEPT


@pytest.mark.parametrize("name", PROMISED)
def test_the_recorded_pairs_gain_what_is_promised(name: str, run_of: Callable[[str], Path]) -> None:
    """Each case's two runs; on a GPU tests/gpu/test_gains.py times the two scripts in turn."""
    slow, fixed = (pipeline.report_of(run_of(each)).steps.step_ms for each in (name, f"{name}-fixed"))
    assert slow / fixed * SAMPLES.get(name, 1.0) >= PROMISED[name]


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        pytest.param(name, claim, id=f"{name}-{claim.__name__}")
        for name in sorted(KEPT & set(APART))
        for claim in CLAIMS[name]
    ],
)
def test_what_has_a_test_of_its_own(name: str, claim: Claim, run_of: Callable[[str], Path]) -> None:
    claim(name, run_of)
