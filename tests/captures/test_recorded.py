"""The GPU runs of tests/captures, read as everywhere: what `make gpu-test` asks of fresh ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.captures.record import scripts
from tests.conftest import CAPTURES
from tests.gpu.claims import *  # noqa: F403  # the claims are the tests here


@pytest.fixture(scope="session")
def run_of(recorded: Callable[[str], Path]) -> Callable[[str], Path]:
    return recorded


def test_every_script_has_its_recording() -> None:
    assert {path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz")} == set(scripts())
