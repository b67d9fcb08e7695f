"""What Nsight Compute counted replaces an estimate: a run and a kernel, both recorded on an H200."""

from __future__ import annotations

import json
import lzma
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trace.test_nsight import RECORDED, Recorded
from warpline import pipeline, runs
from warpline.model.kernel import KernelInside
from warpline.model.report import Finding
from warpline.trace.nsight import inside

RUN = RECORDED.with_name("transpose-kernel.tar.xz")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    with tarfile.open(RUN) as packed:
        packed.extractall(folder, filter="data")
    return folder


def kernel_of(run: Path) -> KernelInside:
    """The recorded kernel, on the lines that it has in the run."""
    kernel = inside(Recorded(json.loads(lzma.decompress(RECORDED.read_bytes()))))
    script = runs.manifest(run).script
    text = runs.sources(run)[script]
    store = next(n for n, line in enumerate(text.splitlines(), 1) if "tl.store(" in line)
    (recorded,) = (line.line for line in kernel.lines if line.used_percent == 12.5)
    lines = (replace(line, file=script, line=line.line + store - recorded) for line in kernel.lines)
    return replace(kernel, lines=tuple(lines)).with_texts(runs.sources(run).get)


def found(run: Path) -> Finding:
    (finding,) = (one for one in pipeline.report_of(run).findings if one.rule == "uncoalesced-access")
    return finding


def test_the_count_takes_the_place_of_the_estimate(run: Path) -> None:
    estimated = found(run)
    assert "estimated" in " ".join(one.unit for one in estimated.evidence)
    runs.keep_kernel(run, kernel_of(run))
    for name in ("report.json", "profile.json"):
        (run / name).unlink()
    measured = found(run)
    assert (measured.file, measured.line) == (estimated.file, estimated.line)
    values = {one.metric: one.value for one in measured.evidence}
    assert values["sectors moved"] == 33554432
    assert values["sectors needed"] == 4194304
    assert "estimate" not in measured.message


def test_of_a_kernel_that_read_otherwise_nothing_is_shown(run: Path) -> None:
    kernel = kernel_of(run)
    first, *rest = kernel.lines
    runs.keep_kernel(run, replace(kernel, lines=(replace(first, text="another = 1"), *rest)))
    assert pipeline.profile_of(run).inside == ()
    assert "estimate" in found(run).message
