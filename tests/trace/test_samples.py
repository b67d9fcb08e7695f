"""Public sample traces (``make samples``): what the import makes of them adds up as in the file.

``make bench`` compares the totals with those of HTA and of the TensorBoard plugin themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sample_traces import NO_TRACES, differ, in_json, ours, shortened, trace_files
from tests.trace.samples import FOLDER

#: Python's own JSON parser takes a minute and gigabytes for larger ones.
LARGEST = 4 << 20
FILES = [path for path in trace_files(FOLDER) if path.stat().st_size < LARGEST]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_kernels_add_up_as_in_the_file(path: Path, tmp_path: Path) -> None:
    if path.name in NO_TRACES:
        assert ours(path, tmp_path) is None
        return
    found = ours(path, tmp_path)
    assert found is not None
    assert differ(found, shortened(in_json(path))) == []
