"""A step with more samples, given per present batch."""

from __future__ import annotations

import pytest

from tests.simulate.machine import Machine, simulation
from warpline.model.change import LargerBatch


def launches(m: Machine) -> None:
    for _ in range(300):
        m.op(10, "aten::add", 20, 4)


def test_a_larger_batch_is_given_per_present_batch() -> None:
    found, truth = simulation(launches)
    predicted = found.predict(LargerBatch(4.0))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth / 4, rel=0.1)


@pytest.mark.parametrize(
    ("name", "grows"),
    [
        ("CompiledFunction", True),
        ("aten::copy_", True),
        ("aten::_fused_adamw_", False),
        ("nccl:all_reduce", False),
    ],
)
def test_all_but_the_update_grows_with_the_batch(name: str, grows: bool) -> None:
    def program(m: Machine) -> None:
        for _ in range(20):
            m.op(10, name, 10, 400)

    found, truth = simulation(program)
    predicted = found.predict(LargerBatch(2.0))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth if grows else truth / 2, rel=0.05)
