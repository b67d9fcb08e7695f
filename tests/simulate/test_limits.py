"""What bounds a step, where it is plain to see."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulate.machine import Machine, simulation
from tests.simulate.test_simulation import device_bound, launch_bound, loading, on_cpu
from warpline.model.change import LoaderWorkers, Together
from warpline.model.report import Resource

NOTHING = Together(())


def bytes_bound(m: Machine) -> None:
    for _ in range(20):
        m.op(11, "aten::add", 8, 300)


@pytest.mark.parametrize(
    ("program", "wanted"),
    [(device_bound, "compute"), (bytes_bound, "memory"), (launch_bound, "launches"), (loading, "loader")],
)
def test_the_resource_whose_halving_saves_most(program: Callable[[Machine], None], wanted: Resource) -> None:
    assert simulation(program)[0].limit(NOTHING) == wanted


def test_another_one_bounds_it_once_that_is_fixed() -> None:
    found, _ = simulation(loading)
    assert found.limit(LoaderWorkers(8)) != "loader"


def test_the_floor_is_below_the_step_and_not_nothing() -> None:
    found, _ = simulation(on_cpu, on_gpu=False)
    assert 0 < found.floor_ms() < found.step_ns / 1e6
