"""The replay of runs recorded on a GPU (tests/captures), and what of the calibration they can refute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from tests.conftest import CAPTURES
from warpline import trace
from warpline.attribution import attribute, locate
from warpline.model.change import LoaderWorkers, OverlapCopies, Together
from warpline.simulate import Places, Simulation, calibrate
from warpline.simulate.replay import replay
from warpline.simulate.timeline import timeline_of
from warpline.trace import Trace

Recording = tuple[Trace, Places, Simulation]
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz"))


@pytest.fixture(scope="module", params=NAMES)
def recording(request: pytest.FixtureRequest, recorded: Callable[[str], Path]) -> Recording:
    events = trace.read(recorded(request.param))
    located = locate(events)
    lines = tuple(zip(located.table.file, located.table.line, strict=True))
    places = Places(located.placed.line, located.table.of_location, lines)
    return events, places, Simulation(events, places, attribute(events, located))


def test_the_window_replayed_as_it_was_recorded_takes_as_long(recording: Recording) -> None:
    """With no scale fitted and nothing taken off: what the order of events alone makes of it."""
    events, places, _ = recording
    line = calibrate.unblocked(timeline_of(events, places))
    low, high = events.window_ns
    assert replay(line, calibrate.delays(line)) == pytest.approx((high - low) / events.steps, rel=0.03)


def test_the_step_replayed_takes_as_long_as_it_was_timed(recording: Recording) -> None:
    _, _, simulation = recording
    assert simulation.replayed_ms == pytest.approx(simulation.step_ns / 1e6, rel=0.03)


def test_what_the_loader_with_workers_took_was_predicted_from_the_one_without(
    recorded: Callable[[str], Path],
) -> None:
    name, change = "loader-without-workers", Together((LoaderWorkers(8), OverlapCopies()))
    slow, fixed = trace.read(recorded(name)), trace.read(recorded(f"{name}-fixed"))
    located = locate(slow)
    lines = tuple(zip(located.table.file, located.table.line, strict=True))
    places = Places(located.placed.line, located.table.of_location, lines)
    predicted = Simulation(slow, places, attribute(slow, located)).predict(change)
    assert predicted is not None
    # Not the 30 % that no prediction may be off: nothing is random here.
    assert predicted.step_ms == pytest.approx(fmean(fixed.manifest.timed_ns) / 1e6, rel=0.15)
