"""On a GPU with Nsight Compute: a kernel looked into, on its own source lines, and two of them compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, warpline
from warpline.capture import nsight_module, probe

TRANSPOSE = ROOT / "examples/transpose-kernel/slow.py"


def line_with(words: str) -> int:
    return next(n for n, text in enumerate(TRANSPOSE.read_text().splitlines(), 1) if words in text)


@pytest.fixture(scope="module")
def looked_into(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The working folder, with its run, and the JSON of ``warpline kernel`` at the store."""
    if shutil.which("ncu") is None:
        pytest.fail("these tests need Nsight Compute: put ncu on the PATH")
    folder = tmp_path_factory.mktemp("kernel")
    done = warpline("profile", "--probe", "0", TRANSPOSE, cwd=folder)
    assert done.returncode == 0, done.stderr
    done = warpline("kernel", "--json", "-", f"{TRANSPOSE}:{line_with('tl.store')}", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def at(inside: dict[str, Any], words: str) -> dict[str, Any]:
    (found,) = (
        line
        for line in inside["lines"]
        if line["line"] == line_with(words) and line["file"] == str(TRANSPOSE)
    )
    return found


def test_the_python_module_is_found() -> None:
    ncu = probe.nsight_compute()
    assert ncu is not None
    nsight_module.find(ncu)


def test_the_store_uses_four_bytes_of_a_sector_and_the_load_all(
    looked_into: tuple[Path, dict[str, Any]],
) -> None:
    store, load = (at(looked_into[1], words) for words in ("tl.store", "tl.load"))
    assert store["ideal_sectors"] / store["sectors"] == pytest.approx(0.125, rel=0.01)
    assert load["ideal_sectors"] == load["sectors"] > 0


def test_it_is_known_what_the_warps_wait_for_and_how_near_the_peak_they_come(
    looked_into: tuple[Path, dict[str, Any]],
) -> None:
    inside = looked_into[1]
    assert sum(at(inside, "tl.store")["stalls"].values()) > 0
    for share in ("compute_percent", "memory_percent", "occupancy_percent"):
        assert 0 < inside[share] <= 100
    assert 0 < inside["duration_ms"] < 100
    assert inside["device"]


def test_nsight_computes_own_rules_are_listed(looked_into: tuple[Path, dict[str, Any]]) -> None:
    assert any("coalesced" in " ".join(said).lower() for said in looked_into[1]["advice"])


def test_the_table_shows_the_store(looked_into: tuple[Path, dict[str, Any]]) -> None:
    done = warpline("kernel", f"{TRANSPOSE}:{line_with('tl.store')}", cwd=looked_into[0])
    assert done.returncode == 0, done.stderr
    assert "4 of 32 bytes (12 %)" in done.stdout


def test_two_versions_side_by_side(looked_into: tuple[Path, dict[str, Any]]) -> None:
    """The slow one is kept; the fixed one is profiled and looked into now."""
    fixed = TRANSPOSE.with_name("fixed.py")
    store = next(n for n, text in enumerate(fixed.read_text().splitlines(), 1) if "tl.store" in text)
    assert warpline("profile", "--probe", "0", fixed, cwd=looked_into[0]).returncode == 0
    (kept,) = looked_into[0].glob(".warpline/runs/*/kernel-*.json")
    done = warpline("kernel", "--against", kept, "--json", "-", f"{fixed}:{store}", cwd=looked_into[0])
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert before["duration_ms"] > 3 * after["duration_ms"]
    (tiled,) = (line for line in after["lines"] if line["line"] == store)
    assert tiled["ideal_sectors"] / tiled["sectors"] > 0.9
