"""Kernels replayed by a CUDA graph, led back to the lines that were captured.

The runs are built by hand: there is no GPU here (see tests/kineto.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kineto import MAIN, KinetoRun, approx, at_line, closed, ns

BLOCK = [128, 1, 1]


def node(line: int, grid: int, backward: bool = False, name: str = "") -> dict[str, Any]:
    return {
        "kind": 0, "line": line, "backward": backward, "grid": [grid, 1, 1], "block": BLOCK, "name": name
    }  # fmt: skip


def replayed_run(folder: Path, nodes: list[dict[str, Any]], graph: int = 0) -> KinetoRun:
    """Line 10 replays a graph that was captured at lines 30 and 31."""
    run = KinetoRun(folder, 1000)
    run.line(0, 10)
    file = str(folder / "train.py")
    run.facts["captured_graphs"] = [{"lines": [[file, 30, "forward"], [file, 31, "forward"]], "nodes": nodes}]
    run.facts["replays"] = [{"time_ns": ns(49), "thread": MAIN, "graph": graph}]
    return run


def replay(run: KinetoRun, grids: list[int], names: tuple[str, ...] = ()) -> None:
    launch = run.call("cudaGraphLaunch", 50, 10)
    for at, grid in enumerate(grids):
        name = {"name": names[at]} if names else {}
        run.replayed(100 + 100 * at, 100, launch, grid=[grid, 1, 1], block=BLOCK, **name)


def test_kernels_of_a_replay_stand_on_the_captured_lines(tmp_path: Path) -> None:
    run = replayed_run(tmp_path, [node(0, 8), node(1, 8), node(0, 4, backward=True)])
    replay(run, [8, 8, 4])
    profile = run.profile()
    assert at_line(profile, 30).forward_ms == approx(0.1)
    assert at_line(profile, 30).backward_ms == approx(0.1)
    assert at_line(profile, 31).forward_ms == approx(0.1)
    assert at_line(profile, 10).device_ms == 0
    assert closed(profile) == approx(1.0)
    assert not any("CUDA graphs" in note for note in profile.notes)


def test_streams_may_change_the_order(tmp_path: Path) -> None:
    run = replayed_run(tmp_path, [node(0, 8), node(1, 2), node(0, 4)])
    replay(run, [2, 8, 4])
    profile = run.profile()
    assert at_line(profile, 31).device_ms == approx(0.1)
    assert at_line(profile, 30).device_ms == approx(0.2)


def test_names_tell_kernels_that_were_launched_alike(tmp_path: Path) -> None:
    run = replayed_run(tmp_path, [node(0, 8, name="erfinv"), node(1, 8, name="gelu"), node(1, 8, name="f")])
    replay(run, [8, 8, 8], ("gelu", "erfinv", "g"))
    profile = run.profile()
    assert at_line(profile, 30).device_ms == approx(0.1)
    assert at_line(profile, 31).device_ms == approx(0.2)


def test_what_was_not_captured_there_is_not_attributed(tmp_path: Path) -> None:
    run = replayed_run(tmp_path, [node(0, 8)])
    replay(run, [8, 99])
    profile = run.profile()
    assert at_line(profile, 30).device_ms == approx(0.1)
    assert profile.unattributed.device_ms == approx(0.1)


def test_a_graph_captured_unseen_is_named(tmp_path: Path) -> None:
    run = replayed_run(tmp_path, [node(0, 8)], graph=-1)
    replay(run, [8])
    profile = run.profile()
    assert profile.unattributed.device_ms == approx(0.1)
    assert any("CUDA graphs whose capture was not recorded" in note for note in profile.notes)
