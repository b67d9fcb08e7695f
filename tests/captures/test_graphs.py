"""CUDA graphs that scripts capture: what tests/gpu asks of fresh runs, asked of runs recorded on an H100."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.captures.record import GRAPHS
from tests.gpu import test_captured_graphs as claims


@pytest.mark.parametrize("name", GRAPHS)
def test_replayed_time_is_on_lines(name: str, recorded: Callable[[str], Path]) -> None:
    claims.test_replayed_time_is_on_lines(name, recorded)


@pytest.mark.parametrize(("name", "number", "kernel"), claims.MARKED, ids=str)
def test_replayed_kernels_are_on_their_line(
    name: str, number: int, kernel: str, recorded: Callable[[str], Path]
) -> None:
    claims.test_replayed_kernels_are_on_their_line(name, number, kernel, recorded)
