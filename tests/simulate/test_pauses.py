"""Garbage collections every few steps: the host is as fast as the steps between them say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulate.machine import BASE, FILE, Machine, places, trace
from warpline.model.change import Scale
from warpline.simulate import Simulation
from warpline.trace import Trace

PAUSE_US = 40_000
COLLECTING = 12  # the line


def recorded(collecting: bool = True) -> tuple[Trace, float, float]:
    """Four captured steps, of which the second collects garbage; the length of a step between collections,
    and of one on average, in ms. One timed step in four collects."""
    machine = Machine()
    spans = []

    def step(m: Machine) -> None:
        for _ in range(20):
            m.op(10, "aten::mm", 40, 30)
        begin = m.now
        m.work(COLLECTING, PAUSE_US if len(m.steps) == 1 else 1)
        if len(m.steps) == 1:
            spans.append((BASE + begin, BASE + m.now))
        m.sync(11)

    step(machine)
    for _ in range(4):
        machine.step(step)
    short_ns = machine.steps[2][1] - machine.steps[2][0]
    timed = tuple(short_ns + (PAUSE_US * 1_000 if at % 4 == 1 else 0) for at in range(40))
    mean_ms = sum(timed) / len(timed) / 1e6
    seen = trace(machine, mean_ms)
    gc = (tuple(spans), PAUSE_US * 1_000 * 10) if collecting else ((), 0)
    facts = replace(seen.facts, gc_ns=gc[0], gc_timed_ns=gc[1])
    return (
        replace(seen, manifest=replace(seen.manifest, timed_ns=timed), facts=facts),
        short_ns / 1e6,
        mean_ms,
    )


def test_a_pause_every_few_steps_is_not_evened_out() -> None:
    seen, short_ms, mean_ms = recorded()
    found = Simulation(seen, places(seen))
    assert found.replayed_ms == pytest.approx(mean_ms, rel=0.01)
    predicted = found.predict(Scale(((FILE, COLLECTING),), host=0.0))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(short_ms, rel=0.05)


def test_nor_does_it_slow_the_rest_of_the_host() -> None:
    seen, short_ms, mean_ms = recorded()
    predicted = Simulation(seen, places(seen)).predict(Scale(((FILE, 10),), host=0.5, device=0.5))
    assert predicted is not None
    assert mean_ms - predicted.step_ms < 0.6 * short_ms


def test_a_long_step_without_a_collection_is_evened_as_before() -> None:
    seen, *_ = recorded(collecting=False)
    predicted = Simulation(seen, places(seen)).predict(Scale(((FILE, COLLECTING),), host=0.0))
    assert predicted is not None
    assert predicted.speedup < 2.5
