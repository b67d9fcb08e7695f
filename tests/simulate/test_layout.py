"""Channels last, where channels first was recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulate.machine import FILE, Machine, run, simulation
from warpline import pipeline
from warpline.model.change import ChannelsLast, Places

NORM = [[64, 128, 112, 112], [128]]  # 0.41 GB in fp32
PEAKS = {"fp32": 50e12, "bytes_per_s": 4e12}


def channels_first(m: Machine) -> None:
    for _ in range(8):
        m.op(10, "aten::cudnn_convolution", 10, 200, kernel="nchwToNhwcKernel")
        m.op(10, "aten::cudnn_convolution", 10, 400, kernel="implicit_gemm")
        m.op(11, "aten::cudnn_batch_norm", 10, 600, NORM)
        m.op(11, "aten::cudnn_batch_norm_backward", 10, 500, NORM)
        m.op(11, "aten::native_batch_norm", 10, 4000, NORM)
        m.op(11, "aten::native_batch_norm_backward", 10, 800, NORM)


def channels_last(m: Machine) -> None:
    for _ in range(8):
        m.op(10, "aten::cudnn_convolution", 10, 400, kernel="implicit_gemm")
        m.op(11, "aten::cudnn_batch_norm", 10, 3 * 411.04 / 4, NORM)
        m.op(11, "aten::cudnn_batch_norm_backward", 10, 500, NORM)  # quicker than its bytes could be
        m.op(11, "aten::native_batch_norm", 10, 3.5 * 3 * 411.04 / 4, NORM)  # PyTorch's own is slower
        m.op(11, "aten::native_batch_norm_backward", 10, 800, NORM)


@pytest.mark.parametrize("where", [(), ((FILE, 10), (FILE, 11))])
def test_nothing_is_turned_and_norms_move_at_the_bandwidth(where: Places) -> None:
    found, _ = simulation(channels_first, peaks=PEAKS)
    predicted = found.predict(ChannelsLast(where))
    _, truth = run(channels_last)
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.01)


def test_norms_that_were_recorded_in_channels_last_gain_nothing(recorded: Callable[[str], Path]) -> None:
    run = recorded("resnet_channels_last")  # in bfloat16: PyTorch's own
    predicted = pipeline.predictor_of(run)(pipeline.profile_of(run), ChannelsLast())
    assert predicted is not None
    assert predicted.speedup == pytest.approx(1, abs=0.01)
