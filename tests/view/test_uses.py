"""The report by operator and by kernel: names of all lines added up, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests import samples
from warpline import pipeline
from warpline.model.profile import Kernel, LineCost, Op
from warpline.model.report import Composition
from warpline.view import composition
from warpline.view.uses import uses

ADD, MM = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)", "gemm"
PROFILE = replace(
    samples.profile(),
    lines=(
        LineCost(
            samples.MODEL, 3, "Net.forward",
            kernels=(
                Kernel(MM, "forward", 2, 3.0), Kernel(MM, "backward", 4, 5.0), Kernel(ADD, "forward", 1, 0.5),
            ),
            ops=(Op("aten::mm", "forward", 2, 3.0, 0.4), Op("aten::mm", "backward", 4, 5.0, 0.2)),
        ),
        LineCost(samples.SCRIPT, 5, "<module>", kernels=(Kernel(ADD, "forward", 1, 1.0),)),
    ),
    unattributed_kernels=(Kernel(ADD, "forward", 1, 0.25),),
    totals={"device_ms": 10.0},
)  # fmt: skip


def test_kernels_of_all_lines_and_of_none_are_added_up() -> None:
    found = uses(PROFILE, "kernel")
    gemm, add = found.rows
    assert (gemm.name, gemm.device_ms, gemm.count, gemm.backward_ms) == (MM, 8.0, 6, 5.0)
    assert gemm.share == pytest.approx(0.8)
    assert gemm.places == ("model.py:3",)
    assert add.name == "vectorized_elementwise_kernel<CUDAFunctor_add<float>>"
    assert (add.device_ms, add.places) == (1.75, ("train.py:5", "model.py:3", "no line"))


def test_what_top_leaves_out_is_said() -> None:
    found = uses(PROFILE, "kernel", top=1)
    assert len(found.rows) == 1
    assert found.rest == "1 more: 2.00 ms (20 % of the device time)"


def test_operators_say_what_the_host_takes() -> None:
    (row,) = uses(PROFILE, "operator").rows
    assert (row.name, row.device_ms, row.count) == ("aten::mm", 8.0, 6)
    assert row.cpu_ms == pytest.approx(0.6)


@pytest.mark.parametrize("by", ["kernel", "operator"])
def test_all_rows_of_a_recorded_run_make_its_device_time(recorded: Callable[[str], Path], by: str) -> None:
    profile = pipeline.profile_of(recorded("nccl"))
    rows = uses(profile, by, top=10_000).rows  # type: ignore[arg-type]
    assert sum(row.device_ms for row in rows) == pytest.approx(profile.totals["device_ms"], rel=1e-3)
    assert sum(row.share for row in rows) == pytest.approx(1.0, rel=1e-3)


def test_the_composition_in_one_line() -> None:
    assert composition.line(Composition(5.5, 1.5, 2.0, 0.0, 0.9, 0.0, 0.1)) == (
        "loader 55 %, host 15 %, forward 20 %, optimizer 9.0 %, idle 1.0 %"
    )
    assert composition.line(None) == ""
    assert composition.line(Composition(0, 0, 0, 0, 0, 0, 0)) == ""
