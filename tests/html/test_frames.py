"""A page with 100 000 items stays smooth while its timeline is zoomed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.page import measured

pytestmark = [pytest.mark.editor, pytest.mark.timeout(240)]


def test_a_frame_of_a_hundred_thousand_items_leaves_time(
    recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    """50 frames a second are 20 ms each. Processor time: other processes do not count."""
    found = measured(recorded("loader-without-workers"), 100_000, tmp_path / "page.html", frames=100)
    assert found["items"] >= 100_000
    assert found["bytes"] < 5_000_000
    assert 0 < found["script_cpu_ms"] <= found["cpu_ms"] < 20
