"""The page in a real Chromium, as a person uses it. Left out like the editors where these are missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.editors.desk import LIMIT_S, PICTURES
from warpline import pipeline, runs
from warpline.html.compared import Against
from warpline.html.page import page
from warpline.model.report import Report
from warpline.view import units
from warpline.view.compare import compare

HERE = Path(__file__).parent
#: Of every size, with some that lie exactly between two rounded ones.
VALUES = [
    *(
        0,
        0.0004,
        0.0625,
        0.0995,
        0.1,
        0.25,
        0.75,
        1.5,
        2.5,
        3.125,
        9.95,
        12.25,
        12.75,
        45.5,
        99.5,
        99.97,
        100,
    ),
    *(256.5, 999.5, 1234.5, 9999, 10000, 12345.6, 2.0**20 * 12.25, 2.0**30 * 256.5, 6.2e13, 1.0e17),
]
pytestmark = [pytest.mark.editor, pytest.mark.timeout(2 * LIMIT_S)]


@pytest.fixture(scope="module")
def report(recorded: Callable[[str], Path]) -> Report:
    return pipeline.report_of(recorded("loader-without-workers"))


@pytest.fixture(scope="module")
def seen(
    report: Report, recorded: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    if not (ROOT / "node_modules/playwright-core").is_dir():
        pytest.fail("playwright-core is missing: npm ci")
    run, file = recorded("loader-without-workers"), tmp_path_factory.mktemp("page") / "page.html"
    profile, other = pipeline.profile_of(run), recorded("loader-without-workers-fixed")
    before = pipeline.report_of(other)
    against = Against("fixed", before, compare(before, report, runs.sources(other), profile.sources))
    made = page(report, profile, pipeline.timeline_of(run), against, pipeline.roofs_of(profile))
    file.write_text(made, encoding="utf-8")
    assert file.stat().st_size < 5_000_000
    several, nccl = tmp_path_factory.mktemp("ranks") / "page.html", recorded("nccl")
    several.write_text(
        page(
            pipeline.report_of(nccl),
            pipeline.profile_of(nccl),
            pipeline.timeline_of(nccl),
            beside=pipeline.ranks_of(nccl),
        ),
        encoding="utf-8",
    )
    pictures: list[str] = []
    plain = tmp_path_factory.mktemp("plain") / "page.html"
    if os.environ.get("WARPLINE_PICTURES"):  # `make pictures`; the sessions in VS Code make their own
        pictures = [str(PICTURES)]
        cwd = str(Path(report.script).parents[2])
        roofs = pipeline.roofs_of(profile)
        made = page(report, profile, pipeline.timeline_of(run), None, roofs, cwd=cwd)
        plain.write_text(made, encoding="utf-8")
    done = subprocess.run(
        ["node", str(HERE / "session.mjs"), str(file), *pictures],
        cwd=ROOT,
        env={**os.environ, "VALUES": json.dumps(VALUES), "RANKS": str(several), "PLAIN": str(plain)},
        capture_output=True,
        text=True,
        timeout=1.6 * LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def column(rows: list[list[str]], at: int) -> list[str]:
    return [row[at] for row in rows]


def test_nothing_is_refused_and_nothing_is_loaded(seen: dict[str, Any]) -> None:
    assert seen["errors"] == []
    assert set(seen["requests"]) == {"file:page.html"}


def test_the_table_of_lines_has_the_reports_numbers(seen: dict[str, Any], report: Report) -> None:
    heads = [head.rstrip(" ▾▴") for head in seen["heads"]]
    ordered = sorted(report.lines, key=lambda line: -line.step_ms)
    assert column(seen["lines"], heads.index("line")) == [
        f"{Path(line.file).name}:{line.line}" for line in ordered
    ]
    assert column(seen["lines"], heads.index("step ms")) == [
        units.milliseconds(line.step_ms) for line in ordered
    ]
    assert column(seen["lines"], heads.index("share")) == [
        units.percent(line.step_ms / report.steps.step_ms) for line in ordered
    ]
    assert column(seen["lines"], heads.index("memory")) == [
        units.size(line.memory_bytes) if line.memory_bytes else "" for line in ordered
    ]


def test_numbers_are_written_as_everywhere_else(seen: dict[str, Any]) -> None:
    expected = [
        [
            units.ms(value),
            units.percentage(value),
            units.size(value),
            units.count(value),
            units.rate(value, "FLOP"),
        ]
        for value in VALUES
    ]
    assert seen["words"] == expected


def test_sorting_and_searching(seen: dict[str, Any], report: Report) -> None:
    ordered = sorted(report.lines, key=lambda line: -line.device_ms)
    sorted_lines = column(seen["byDevice"], 0)
    assert sorted_lines[:3] == [f"{Path(line.file).name}:{line.line}" for line in ordered[:3]]
    assert seen["found"]
    assert all("loss" in " ".join(row) for row in seen["found"])
    assert len(seen["found"]) < len(seen["lines"])


def test_operators_and_kernels_add_up_as_in_the_report(seen: dict[str, Any], report: Report) -> None:
    sums: dict[tuple[str, str], float] = {}
    for use in (use for line in report.lines for use in line.ops):
        sums[use.name, use.phase] = sums.get((use.name, use.phase), 0.0) + use.device_ms
    for name, phase, shown, *_ in seen["operators"]:
        assert shown == units.milliseconds(sums[name, phase])
    assert len(seen["operators"]) == min(50, len(sums))
    kernels = {(use.name, use.phase) for line in report.lines for use in line.kernels}
    assert len(seen["kernels"]) == min(50, len(kernels))


def test_a_row_leads_to_its_source_line(seen: dict[str, Any]) -> None:
    assert seen["jumpFrom"].endswith(f":{seen['jumpTo']}")
    assert "of the step" in seen["unfolded"]


def test_a_finding_leads_to_its_line_and_to_its_rule(seen: dict[str, Any], report: Report) -> None:
    assert int(seen["findingLine"]) == report.findings[0].line
    assert seen["ruleOpen"] == 1


def test_hover_names_the_kernel_its_time_and_its_line(seen: dict[str, Any]) -> None:
    item, tip = seen["hovered"]["item"], seen["hovered"]["tip"]
    assert tip.splitlines()[0] == item["label"]
    assert units.milliseconds(item["length"] / 1000).split(".")[0] in tip
    assert re.search(r"slow\.py:\d+", tip)
    assert item["label"] in seen["pinned"]


def test_the_timeline_zooms_moves_and_finds(seen: dict[str, Any]) -> None:
    def width(name: str) -> float:
        start, end = seen[name]
        return float(end - start)

    assert seen["before"][0] >= 0
    assert width("zoomed") < width("before") / 2
    assert width("dragged") == pytest.approx(width("zoomed"))
    assert seen["dragged"][0] < seen["zoomed"][0]
    assert width("whole") > width("before") > 0
    assert width("step") < width("whole")
    assert re.match(r"[1-9]\d* found", seen["matches"])
    assert seen["hovered"]["item"]["label"][:20] in seen["next"]


def test_no_more_boxes_are_drawn_than_there_are_pixels(seen: dict[str, Any]) -> None:
    boxes = seen["boxes"]
    most = boxes["titles"] + sum(min(items, 2 * boxes["width"]) for items in boxes["items"])
    assert boxes["titles"] < boxes["drawn"] <= most
    assert max(boxes["items"]) > 2 * boxes["width"]


def test_two_runs_are_compared_line_by_line(seen: dict[str, Any], report: Report) -> None:
    name, _, after, change, *_ = seen["compared"][0]
    line = int(name.rpartition(":")[2])
    assert seen["comparedLine"] == str(line)
    (cost,) = (each for each in report.lines if each.line == line)
    assert after == units.milliseconds(cost.step_ms)
    assert change.startswith("+")


def test_ranks_stand_side_by_side(seen: dict[str, Any], recorded: Callable[[str], Path]) -> None:
    ranks = pipeline.ranks_of(recorded("nccl"))
    assert seen["bars"] == len(ranks) == 2
    heads = [head.rstrip(" ▾▴") for head in seen["rankHeads"]]
    for rank in ranks:
        costs = {f"{Path(line.file).name}:{line.line}": line.step_ms for line in rank.report.lines}
        shown = {row[0]: row[heads.index(f"rank {rank.number}")] for row in seen["ranks"]}
        assert shown == {place: units.milliseconds(costs.get(place, 0.0)) for place in shown}
        assert costs.keys() <= shown.keys()
    assert seen["tracks"][-2:] == ["Rank 1, stream 7", "Rank 1, stream 17"]


def test_the_flame_graphs_box_is_chosen(seen: dict[str, Any], report: Report) -> None:
    name, share = seen["flame"].splitlines()[:2]
    function = name.partition(" (")[0]
    total = sum(line.step_ms for line in report.lines if line.function == function)
    assert share.startswith(units.ms(total))


def test_slash_goes_to_a_search(seen: dict[str, Any]) -> None:
    assert seen["focus"] == "search"


def test_light_dark_phone_and_paper(seen: dict[str, Any]) -> None:
    assert seen["light"] != seen["dark"]
    wide, window = seen["phone"]
    assert wide <= window
    assert seen["printedHeader"] is False
    assert (seen["printed"], seen["afterwards"]) == ([seen["light"]], seen["dark"])
