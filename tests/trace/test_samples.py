"""Public sample traces: those of HTA's tests and of the TensorBoard plugin. They are not in this repository.

    git clone https://github.com/facebookresearch/HolisticTraceAnalysis       # tests/data
    git clone https://github.com/pytorch/kineto; git -C kineto checkout 94979607^   # tb_plugin/samples
    WARPLINE_SAMPLE_TRACES=FOLDER pytest tests/trace/test_samples.py -rs

``benchmarks/sample_traces.py`` prints the table, with the totals that those tools report.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.sample_traces import NO_TRACES, in_json, ours, trace_files
from warpline.trace.contradictions import LONGEST_NAME

FOLDER = os.environ.get("WARPLINE_SAMPLE_TRACES", "")


def files() -> list[Path]:
    return trace_files(Path(FOLDER)) if FOLDER else []


@pytest.mark.skipif(
    not FOLDER, reason="WARPLINE_SAMPLE_TRACES names no folder of sample traces: see the docstring"
)
def test_there_are_traces() -> None:
    assert files()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(FOLDER)))
def test_kernels_add_up_as_in_the_file(path: Path, tmp_path: Path) -> None:
    if path.name in NO_TRACES:
        assert ours(path, tmp_path) is None
        return
    found, expected = ours(path, tmp_path), in_json(path)
    assert found is not None
    # As the import shortens them.
    for name in [name for name in expected if len(name) > LONGEST_NAME]:
        cut = f"{name[: LONGEST_NAME - 1]}…"
        assert cut not in expected  # no two are the same once cut
        expected[cut] = expected.pop(name)
    assert found.keys() == expected.keys()
    for name, total in expected.items():
        assert found[name].count == total.count
        assert found[name].ms == pytest.approx(total.ms, abs=1e-5 * total.count)
