"""The replay of a run recorded here, on a CPU: nothing of the window is lost, and it takes as long."""

from __future__ import annotations

import pytest

from tests.conftest import ExampleRun
from warpline import pipeline, trace
from warpline.attribution import locate
from warpline.model.change import Scale
from warpline.simulate import Places, Simulation
from warpline.simulate.timeline import timeline_of
from warpline.trace import Trace


@pytest.fixture(scope="module")
def recorded(example_run: ExampleRun) -> tuple[Trace, Places]:
    events = trace.read(example_run.run)
    table = locate(events).table
    lines = tuple(zip(table.file, table.line, strict=True))
    return events, Places(locate(events).placed.line, table.of_location, lines)


def test_the_graph_covers_the_captured_window(recorded: tuple[Trace, Places]) -> None:
    events, places = recorded
    low, high = events.window_ns
    assert timeline_of(events, places).host_ns.sum() == pytest.approx(high - low, rel=1e-9)


def test_an_unchanged_step_takes_as_long_as_it_was_measured(
    recorded: tuple[Trace, Places], example_run: ExampleRun
) -> None:
    found = Simulation(*recorded)
    assert found.replayed_ms == pytest.approx(example_run.report.steps.step_ms, rel=0.03)


def test_a_line_that_goes_takes_its_time_with_it(
    recorded: tuple[Trace, Places], example_run: ExampleRun
) -> None:
    hottest = max(example_run.report.lines, key=lambda line: line.step_ms)
    place = ((hottest.file, hottest.line),)
    found = Simulation(*recorded, pipeline.profile_of(example_run.run))
    predicted = found.predict(Scale(place, device=0.0, host=0.0))
    assert predicted is not None
    step_ms = example_run.report.steps.step_ms
    assert step_ms - predicted.step_ms == pytest.approx(hottest.step_ms, rel=0.05)
