"""On a GPU: measured peaks, beside what its data sheet says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import warpline
from warpline.attribution.peaks import peaks_of
from warpline.wire.run import Facts

SCRIPT = Path(__file__).parent / "scripts/waits.py"


def test_measured_peaks_are_near_the_data_sheets_and_kept(tmp_path: Path, device: str) -> None:
    sheet = peaks_of(device, Facts())
    if sheet is None:
        pytest.skip(f"no data sheet of {device} is known")
    found = []
    for words in (["--peaks"], []):
        runs = tmp_path / f"runs{len(found)}"
        words = ["profile", "--probe", "0", *words, "--run-dir", str(runs), str(SCRIPT)]
        done = warpline(*words, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
        assert done.returncode == 0, done.stderr
        (facts,) = runs.glob("*/facts.json")
        found.append(json.loads(facts.read_text())["peaks"])
    first, kept = found
    print(device, {name: f"{value:.3g}" for name, value in first.items()})
    assert first == kept
    for name, best in (
        ("fp32", sheet.fp32),
        ("tf32", sheet.tf32),
        ("bf16", sheet.half),
        ("bytes_per_s", sheet.bytes_per_s),
    ):
        assert 0.4 * best < first[name] < 1.05 * best, name
