"""What the profiler adds to an operator is measured, and the script's own modes do not break it."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warpline.capture.runner.windows.operatorcost import OperatorCost
from warpline.capture.runner.windows.recording import Recording


def test_it_is_measured_where_the_profiler_runs() -> None:
    cost = OperatorCost(torch)
    recording = Recording(device=False)
    recording.prepare()
    recording.start()
    cost.watched()
    recording.stop()
    facts = cost.facts()
    assert set(facts) == {"op_record_ns", "launch_record_ns", "small_op_ns"}
    assert 0 <= facts["op_record_ns"] < 1_000_000
    assert 100 < facts["small_op_ns"] < 1_000_000


def test_without_the_profiler_nothing_is_said() -> None:
    assert OperatorCost(torch).facts() == {}


class Refusing(TorchDispatchMode):
    def __torch_dispatch__(
        self, function: object, types: object, args: object = (), kwargs: object = None
    ) -> object:
        raise RuntimeError("no operator is allowed here")


def test_a_mode_that_refuses_operators_only_loses_the_figure() -> None:
    with Refusing():
        cost = OperatorCost(torch)
        cost.watched()
    assert cost.facts() == {}
