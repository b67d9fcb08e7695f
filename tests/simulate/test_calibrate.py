"""What is read off a trace before anything is fitted, and what is told as a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.simulate.machine import FILE, GAP, Machine, places, run, simulation, trace
from warpline.model.change import Scale
from warpline.simulate.calibrate import delays, with_nodes
from warpline.simulate.simulation import Simulation
from warpline.simulate.timeline import timeline_of


def device_bound(m: Machine) -> None:
    for _ in range(20):
        m.op(10, "aten::mm", 10, 400)
        m.op(11, "aten::add", 8, 100)


def waiting_for_the_device(m: Machine) -> None:
    for _ in range(200):
        m.op(10, "aten::mm", 40, 150)


def waiting_for_the_host(m: Machine) -> None:
    for _ in range(200):
        m.op(10, "aten::mm", 40, 15)


def reading_at_last(m: Machine) -> None:
    waiting_for_the_device(m)
    m.sync(11)


@pytest.mark.parametrize("added", [1.0, 4.0, 12.0])
def test_how_far_the_host_runs_ahead_tells_what_it_takes(added: float) -> None:
    """A step that the device bounds hides that; one that begins with the device idle does not."""
    alone = Machine()
    waiting_for_the_device(alone)
    found, _ = simulation(waiting_for_the_device, added=added, host_step_us=alone.now / 1e3)
    predicted = found.predict(Scale(((FILE, 10),), device=0.1))
    _, truth = run(waiting_for_the_host)
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.03)


def test_a_host_that_waits_in_the_step_tells_nothing() -> None:
    alone = Machine()
    reading_at_last(alone)
    told, _ = simulation(reading_at_last, host_step_us=alone.now / 1e3)
    untold, _ = simulation(reading_at_last)
    quicker = Scale(((FILE, 10),), device=0.1)
    assert told.predict(quicker) == untold.predict(quicker)


def test_what_others_take_of_the_device_is_not_the_hosts() -> None:
    """The timed steps take twice as long as the captured ones say: a gain on the device stays one."""
    machine, truth = run(waiting_for_the_device)
    quicker = Scale(((FILE, 10),), device=0.1)
    found = {}
    for others in (0, 3):
        seen = trace(machine, 2 * truth, others=others)
        predicted = Simulation(seen, places(seen)).predict(quicker)
        assert predicted is not None
        found[others] = predicted.speedup
    _, quick = run(waiting_for_the_host)
    assert 0.95 * truth / quick < found[3] < 1.4 * truth / quick  # the host is as quick as hosts usually are
    assert found[0] < 1.2  # alone on the device: then the host was slow


def test_a_host_among_others_is_no_slower_than_the_quickest_step() -> None:
    """The device alone explains the quickest step, so what the host takes is not known.

    It was slow when it was looked at. A gain on the device is a bound, and one on the host is none."""

    def program(m: Machine) -> None:
        for _ in range(200):
            m.op(10, "aten::mm", 120, 150)

    machine, truth = run(program)
    seen = trace(machine, truth, others=3, host_step_us=1.4 * truth * 1e3)

    def speedup(quickest: float, host: float, device: float) -> tuple[float, str]:
        timed = tuple(round(one * truth * 1e6) for one in 5 * (quickest, 1.5, 3 - quickest))
        here = replace(seen, manifest=replace(seen.manifest, timed_ns=timed))
        found = Simulation(here, places(here)).predict(Scale(((FILE, 10),), host=host, device=device))
        assert found is not None
        return found.speedup, found.basis

    assert speedup(1.02, 1.0, 0.5) == (pytest.approx(2.0, rel=0.05), "bound")
    assert speedup(1.02, 0.5, 1.0) == (pytest.approx(1.0, rel=0.02), "simulated")
    assert speedup(1.45, 1.0, 0.5) == (pytest.approx(1.0, rel=0.05), "simulated")


def test_a_host_that_was_seen_among_others_sets_the_pace_at_last() -> None:
    """The device explains the quickest step, and the host needs nearly as long: little is gained."""

    def program(m: Machine) -> None:
        for _ in range(200):
            m.op(10, "aten::mm", 120, 150)

    def quick(m: Machine) -> None:
        for _ in range(200):
            m.op(10, "aten::mm", 120, 15)

    alone = Machine()
    program(alone)
    machine, truth = run(program)
    seen = trace(machine, truth, others=3, host_step_us=alone.now / 1e3)
    timed = tuple(round(one * truth * 1e6) for one in 5 * (0.97, 1.5, 2.03))
    here = replace(seen, manifest=replace(seen.manifest, timed_ns=timed))
    found = Simulation(here, places(here)).predict(Scale(((FILE, 10),), device=0.1))
    assert found is not None
    _, after = run(quick)
    assert found.step_ms == pytest.approx(after, rel=0.05)


def test_one_quick_step_says_nothing_of_the_device() -> None:
    """The step after one in which the host was late is short: the host sets the pace all the same."""

    def program(m: Machine) -> None:
        for _ in range(200):
            m.op(10, "aten::mm", 120, 90)

    machine, truth = run(program)
    seen = trace(machine, truth, others=3, host_step_us=truth * 1e3)
    timed = tuple(round(one * truth * 1e6) for one in (*[1.0] * 18, 1.25, 0.75))
    here = replace(seen, manifest=replace(seen.manifest, timed_ns=timed))
    found = Simulation(here, places(here)).predict(Scale(((FILE, 10),), host=0.8))
    assert found is not None
    assert found.speedup == pytest.approx(1.25, rel=0.05)


def test_a_device_that_others_used_during_the_capture_is_not_the_limit() -> None:
    """The host makes a tensor for 6 ms, the device works for 4 ms. In every second captured step other
    processes take so much of the device that it seems to be busy all the time."""

    def program(host_us: float, others_us: float = 0.0) -> Callable[[Machine], None]:
        def made(m: Machine) -> None:
            m.work(9, host_us)
            m.sync(10)
            for number in range(40):
                m.op(11, f"aten::mm{number}", 15, 100 + others_us * (len(m.steps) % 2) * (number % 2))

        return made

    machine, _ = run(program(6000, others_us=700))
    _, truth = run(program(6000))
    _, best = run(program(600))
    seen = trace(machine, truth, others=1)
    predicted = Simulation(seen, places(seen)).predict(Scale(((FILE, 9),), host=0.1))
    assert predicted is not None
    assert 1.1 < predicted.speedup < truth / best  # some of what others took may have been in the timed steps


@pytest.mark.parametrize(
    ("clock_mhz", "explains"),
    [
        (1980.0, False),  # nothing slowed the device: then the host was slow
        (1600.0, True),
        (1870.0, False),  # 6 % of the clock do not explain 15 % of the step
    ],
)
def test_what_the_device_lacks_in_clock_is_not_the_hosts(clock_mhz: float, explains: bool) -> None:
    """The timed steps took 15 % longer than the captured ones."""
    machine, truth = run(waiting_for_the_device)
    seen = trace(machine, 1.15 * truth, clock_mhz=clock_mhz)
    predicted = Simulation(seen, places(seen)).predict(Scale(((FILE, 10),), device=0.1))
    assert predicted is not None
    _, quick = run(waiting_for_the_host)
    gain = predicted.speedup
    assert gain > truth / quick if explains else gain == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("days_since_1970", [0, 20_000])
def test_gaps_between_kernels_are_read_to_the_nanosecond(days_since_1970: int) -> None:
    machine, step_ms = run(device_bound)
    seen = trace(machine, step_ms)
    line = timeline_of(seen, places(seen))
    later = replace(line, kernel_start=line.kernel_start + days_since_1970 * 86_400_000_000_000)
    assert delays(later).gap_ns == GAP


def test_what_is_gained_at_most_is_a_bound_unless_it_is_nothing() -> None:
    found, _ = simulation(device_bound)
    some = Scale(((FILE, 10),), device=0.9)
    nothing = Scale(((FILE, 10),), host=0.9)  # hidden behind the device
    most = {change: found.predict(replace(change, at_most=True)) for change in (some, nothing)}
    told = [after and (after.basis, after.step_ms) for after in most.values()]
    known = [after and after.step_ms for after in map(found.predict, most)]
    assert told == [("bound", known[0]), ("simulated", known[1])]


def test_what_autograd_does_between_two_nodes_is_the_second_one_s() -> None:
    """On a CPU, where the line that asks for the backward pass has it otherwise."""

    def program(machine: Machine) -> None:
        machine.op(10, "aten::relu", 20)
        for line in (11, 12):
            machine.work(20, 5)
            machine.op(line, "aten::threshold_backward", 20)
        machine.work(20, 5)

    recorded = trace(*run(program, on_gpu=False))
    placed = places(recorded)
    line = timeline_of(recorded, placed)
    backward = np.isin(line.place, [placed.lines.index((FILE, at)) for at in (11, 12)]) & (line.op >= 0)
    found = with_nodes(replace(line, backward=backward))
    spent = np.bincount(found.place, found.host_ns, len(placed.lines)) / line.steps / 1e3
    by_line = {at: round(float(spent[placed.lines.index((FILE, at))])) for at in (11, 12, 20)}
    assert by_line == {11: 20, 12: 25, 20: 10}
