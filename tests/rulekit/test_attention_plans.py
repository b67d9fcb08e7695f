"""Plans that cuDNN makes for its attention, by the host time of its calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warpline.model.profile import LineCost, Op
from warpline.rulekit.fused_attention import planned_sizes, planning_ms, plans_mostly


def call(samples: int, length: int, cpu_ms: float, tail: str = "") -> Op:
    shape = (samples, 16, length, 64)
    name = f"aten::_scaled_dot_product_cudnn_attention{tail}"
    return Op(name, "backward" if tail else "forward", 1.0, 0.0, cpu_ms, (shape, shape, shape))


@pytest.mark.parametrize(
    ("calls", "planned"),
    [
        ([call(8, 501, 0.3), call(8, 392, 80.0), call(8, 392, 90.0, "_backward")], 170.0),  # a new length
        ([call(8, 501, 0.3), call(3, 501, 80.0)], 0.0),  # an epoch's last batch
        ([call(8, 501, 80.0)], 0.0),  # the only size
        ([call(8, 501, 0.3), call(8, 392, 0.2)], 0.0),
        ([call(8, 501, 6.0), call(7, 501, 6.0)], 12.0),
    ],
)
def test_a_plan_counts_where_lengths_differ(calls: list[Op], planned: float) -> None:
    line = LineCost("train.py", 9, "main", ops=tuple(calls))
    assert planning_ms(line) == planned
    assert not planned or planned_sizes(line) == len({one.shapes for one in calls if one.cpu_ms > 1})


def test_one_step_in_five_plans_seldom() -> None:
    usual, new = call(8, 501, 0.3), call(8, 392, 80.0)
    assert plans_mostly(LineCost("train.py", 9, "main", ops=(usual, new)))
    assert not plans_mostly(LineCost("train.py", 9, "main", ops=(replace(usual, count=4.0), new)))
