"""A job of two ranks with a slow line in one of them, started by any launcher."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.capture.launching import Captured, request
from warpline import pipeline, ranks, runs
from warpline.ranks.paths import of_ranks

JOB = Path(__file__).parent / "scripts" / "job.py"


def planted_is_found(launcher: tuple[str, ...], folder: Path, python: str = sys.executable) -> None:
    """Both ranks are recorded, and rank 1 is named with its slow line."""
    run = Captured(request(JOB, python, launcher=launcher, argv=("ddp", "1"), warmup=2), folder).run
    manifests = [runs.manifest(folder) for folder in of_ranks([run])]
    assert [(one.rank, one.world_size) for one in manifests] == [(0, 2), (1, 2)]
    late = ranks.merge(ranks.reduced(of_ranks([run]), workers=1)).straggler
    assert late is not None
    assert late.rank == 1
    assert "# more" in JOB.read_text().splitlines()[late.line - 1]
    (found,) = (one for one in pipeline.report_of(run).findings if one.rule == "straggler-rank")
    assert (found.file, found.line) == (str(JOB), late.line)
    assert found.cause.line != late.line, "where the others wait"
