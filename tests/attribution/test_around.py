"""What lies around each host event is found once for a trace, whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from warpline import judging
from warpline.attribution import locate
from warpline.attribution.around import FRAME, around, operators
from warpline.simulate.timeline import timeline_of
from warpline.trace import nest
from warpline.trace import read as read_trace
from warpline.trace.columns import OP


@pytest.mark.parametrize("name", ["planted_sync", "compiled"])
def test_a_trace_is_climbed_once(
    name: str, recorded: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    climbs = []
    climb = nest.nearest

    def counted(*columns: np.ndarray) -> list[np.ndarray]:
        climbs.append(len(columns))
        return climb(*columns)

    monkeypatch.setattr(nest, "nearest", counted)
    read = judging.read(recorded(name), None)
    timeline_of(read.trace, read.places)
    assert len(climbs) == 1


def test_each_column_is_the_nearest_of_its_kind(recorded: Callable[[str], Path]) -> None:
    trace = read_trace(recorded("compiled"))
    found, host = around(trace), trace.host
    frames = operators(trace, FRAME)
    assert frames.any()
    for row in range(len(host)):
        up = row
        while up >= 0 and not frames[up]:
            up = host.parent[up]
        assert found.frame[row] == up
        up = row
        while up >= 0 and host.kind[up] != OP:
            up = host.parent[up]
        assert found.op[row] == up


def test_simulation_finds_the_same_without_attribution(recorded: Callable[[str], Path]) -> None:
    """Places that were made by hand, as a test makes them, bring no answer along."""
    trace = read_trace(recorded("planted_sync"))
    places = judging.places(locate(trace))
    alone = type(places)(places.of_host, places.of_location, places.lines)
    one, other = timeline_of(trace, places), timeline_of(trace, alone)
    assert (one.op == other.op).all()
    assert (one.kernel_backward == other.kernel_backward).all()
