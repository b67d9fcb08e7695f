"""No line of any run that was recorded on an H200 is counted as more than an H200 can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CAPTURES
from warpline import pipeline, runs
from warpline.attribution.peaks import peaks_of
from warpline.wire.run import Facts

#: float32 on the plain units throughout: nothing there may exceed what those can do.
PLAIN_FLOAT32 = {"fp32-bert", "layernorm-finetune", "two_streams"}


@pytest.mark.parametrize(
    "name", sorted(path.name.removesuffix(".tar.xz") for path in CAPTURES.glob("*.tar.xz"))
)
def test_no_line_is_over_the_peak(name: str, recorded: Callable[[str], Path]) -> None:
    run = recorded(name)
    peaks = peaks_of(runs.manifest(run).device.name, Facts())
    assert peaks is not None
    best = peaks.fp32 if name in PLAIN_FLOAT32 else peaks.half
    for line in pipeline.report_of(run).lines:
        if line.roofline is not None:
            seconds = line.device_ms / 1000
            assert line.roofline.flops <= best * seconds, f"{line.file}:{line.line}"
            assert line.roofline.bytes <= peaks.bytes_per_s * seconds, f"{line.file}:{line.line}"
