"""The recipes of docs/tables.md, run on recorded runs; and that they answer what they are asked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.kineto import KinetoRun
from warpline import pipeline, runs
from warpline.tables import Tables

PAGE = (ROOT / "docs/tables.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def found(recorded: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the names in the recipes are bound to after all of them ran."""
    place = tmp_path_factory.mktemp("recipes")
    folder = place / ".warpline/runs"
    named = {"20261122-093000-000": "transpose-kernel", "20261122-101500-000": "transpose-kernel-fixed"}
    for name, capture in {**named, "20261122-114500-000": "nccl"}.items():
        shutil.copytree(recorded(capture), folder / name)
    made = KinetoRun(folder / "20261122-112000-000", window_us=1000)
    made.line(0, 5)
    for at, (number, module) in enumerate([(10, "encoder.0"), (20, "encoder.1")]):
        made.library(100 + at * 300, number, module)
        made.kernel(200 + at * 300, 100, launched=120 + at * 300)
    made.library(800, 0)
    made.write()
    for name in re.findall(r"\d{8}-\d{6}-\d{3}", "".join(RECIPES)):
        assert runs.is_run(folder / name), name
    namespace: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        exec(compile("\n".join(RECIPES), "docs/tables.md", "exec"), namespace)
    return namespace


def test_every_table_is_in_the_page(found: dict[str, Any]) -> None:
    from warpline.tables import BESIDE, TABLES

    assert set(re.findall(r"`tables\.(\w+)`", PAGE)) >= {*TABLES, *BESIDE, "operators"}
    named = re.findall(r"^\| `tables\.(\w+)`[^|]*\|[^|]*\| (.*) \|$", PAGE, re.M)
    for table, cells in named:
        assert set(re.findall(r"`(\w+)`", cells)) <= set(getattr(found["tables"], table).columns)


def test_top_kernels_make_the_device_time(found: dict[str, Any]) -> None:
    tables: Tables = found["tables"]
    kernels = [kernel for line in tables.profile.lines for kernel in line.kernels if kernel.kind == "kernel"]
    name = found["top"].index[0]
    assert found["top"]["device_ms"].iloc[0] == pytest.approx(
        sum(k.device_ms for k in kernels if k.name == name)
    )
    assert found["where"].sum() == pytest.approx(sum(k.device_ms for k in kernels))


def test_layers(found: dict[str, Any]) -> None:
    lines = found["tables"].lines
    assert found["layers"]["step_ms"].sum() == pytest.approx(lines["step_ms"].sum())
    modules = found["modules"]
    assert set(modules.index) == {"encoder.0", "encoder.1"}
    below = found["model"].modules.groupby(["file", "line"])["step_ms"].sum()
    for place, ms in below.items():
        line = found["model"].lines.set_index(["file", "line"]).loc[place]
        assert ms == pytest.approx(line["step_ms"])


def test_ranks(found: dict[str, Any]) -> None:
    assert found["ranks"].index.tolist() == [0, 1]
    assert found["second"].profile.manifest.rank == 1
    assert found["ranks"]["step_ms"][1] == found["second"].report.steps.step_ms


def test_changes_and_the_unattributed_rest_make_the_difference(found: dict[str, Any]) -> None:
    before, after = found["before"].report, found["after"].report
    rest = after.unattributed.step_ms - before.unattributed.step_ms
    difference = after.steps.step_ms - before.steps.step_ms
    assert found["changes"]["difference_ms"].sum() + rest == pytest.approx(difference)
    assert found["changes"]["difference_ms"].abs().is_monotonic_decreasing
    assert found["kernel_changes"].iloc[0] < 0  # the slow transpose is gone


def test_trends_of_one_script_only(found: dict[str, Any]) -> None:
    after: Tables = found["after"]
    assert set(after.trends["run"]) == {"20261122-101500-000"}
    assert len(after.runs) == 4
    assert found["whole"].iloc[0] == pytest.approx(after.report.steps.step_ms)


def test_trends_follow_a_line_that_moved(recorded: Callable[[str], Path], tmp_path: Path) -> None:
    """The same run once more, made a second earlier, when there was a line more above."""
    source = recorded("transpose-kernel")
    for name in ("a", "b"):
        shutil.copytree(source, tmp_path / name)
    manifest, report = runs.manifest(source), pipeline.report_of(tmp_path / "b")
    runs.write_json(
        tmp_path / "a", "manifest.json", replace(manifest, created_ns=manifest.created_ns - 10**9)
    )
    texts = {file: f"# a line\n{text}" for file, text in runs.sources(source).items()}
    runs.write_json(tmp_path / "a", "sources.json", texts)
    lines = tuple(replace(line, line=line.line + 1, step_ms=line.step_ms * 2) for line in report.lines)
    runs.write_json(tmp_path / "a", "report.json", replace(report, lines=lines))
    import warpline

    trends = warpline.load(str(tmp_path / "b")).trends
    first, second = (trends[trends["run"] == name].set_index(["file", "line"])["step_ms"] for name in "ab")
    assert first.to_dict() == pytest.approx((second * 2).to_dict())
