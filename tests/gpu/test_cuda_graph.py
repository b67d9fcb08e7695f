"""On a GPU: what a CUDA graph replays has no lines of its own, and is no idle time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Profiled = Callable[[Path], dict[str, Any]]
SCRIPT = Path(__file__).parent / "graphs/cuda_graph.py"


def line_with(mark: str) -> int:
    (number,) = (n for n, text in enumerate(SCRIPT.read_text().splitlines(), 1) if mark in text)
    return number


def cost(report: dict[str, Any], mark: str) -> dict[str, Any]:
    (found,) = (line for line in report["lines"] if line["line"] == line_with(mark))
    return found


def test_what_is_replayed_is_unattributed_and_said_to_be(profiled: Profiled) -> None:
    report = profiled(SCRIPT)
    eager = sum(line["device_ms"] for line in report["lines"])
    assert report["unattributed"]["device_ms"] > 10 * eager
    assert any("replayed CUDA graphs" in note for note in report["notes"])


def test_the_device_is_not_idle_while_it_replays(profiled: Profiled) -> None:
    report = profiled(SCRIPT)
    idle = sum(line["idle_ms"] for line in report["lines"])
    assert idle < 0.2 * report["steps"]["step_ms"]
    assert report["unattributed"]["step_ms"] > 0.8 * report["steps"]["step_ms"]
    total = sum(line["step_ms"] for line in report["lines"]) + report["unattributed"]["step_ms"]
    assert abs(total - report["steps"]["step_ms"]) <= 0.01 * report["steps"]["step_ms"]


def test_eager_work_beside_the_graph_is_on_its_lines(profiled: Profiled) -> None:
    report = profiled(SCRIPT)
    users = [
        line["line"] for line in report["lines"] if "aten::special_i0" in {op["name"] for op in line["ops"]}
    ]
    assert users == [line_with("# only: aten::special_i0")]
    assert cost(report, "# reads")["sync_ms"] > 0


def test_no_finding_takes_the_replay_for_a_lack_of_work(profiled: Profiled) -> None:
    rules = {finding["rule"] for finding in profiled(SCRIPT)["findings"]}
    assert not rules & {"launch-bound", "small-batch", "loader-without-workers"}
