"""The numbers behind a finding, in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import samples
from warpline.model.report import Evidence
from warpline.view import findings


@pytest.mark.parametrize(
    ("metric", "value", "unit", "said"),
    [
        ("num_workers", 0, "workers", "num_workers 0"),
        ("backward passes per step", 4, "passes", "backward passes per step 4"),
        ("batch size", 8, "samples", "batch size 8 samples"),
        ("transforms", 2.5, "ms", "transforms 2.50 ms"),
        ("entries read", 5, "count", "entries read 5"),
        ("bytes moved", 2**20, "bytes", "bytes moved 1.0 MiB"),
        ("time at the line", 59, "percent of batch time", "time at the line 59 % of batch time"),
    ],
)
def test_a_unit_that_the_metric_names_is_not_said_twice(
    metric: str, value: float, unit: str, said: str
) -> None:
    (finding, *_) = samples.report().findings
    assert findings.evidence(replace(finding, evidence=(Evidence(metric, value, unit),))) == (said,)
