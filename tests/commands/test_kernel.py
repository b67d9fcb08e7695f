"""``warpline kernel``: which kernel is meant, and what is read from Nsight Compute.

``ncu`` and its Python module are played (tests/fake_ncu.py).
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ExampleRun
from tests.fake_ncu import COLLECTS, STORE, TRANSPOSE, fake_ncu
from warpline import pipeline, runs
from warpline.__main__ import main
from warpline.capture import nsight_module, probe
from warpline.commands.kernel import _read
from warpline.diagnosis import kernel_at
from warpline.model.problem import Problem
from warpline.model.profile import Kernel
from warpline.syntax.files import text_of
from warpline.trace.nsight import read
from warpline.view.kernel import kernel_table


def test_a_line_in_a_triton_kernel_means_that_kernel(example_run: ExampleRun) -> None:
    assert (
        kernel_at(pipeline.profile_of(example_run.run), TRANSPOSE, STORE, TRANSPOSE.read_text())
        == "transpose_rows"
    )


def test_a_line_that_launches_nothing_is_said(example_run: ExampleRun) -> None:
    with pytest.raises(Problem, match="launches no kernel"):
        kernel_at(pipeline.profile_of(example_run.run), example_run.script, 1, "")


def test_without_ncu_the_doctor_is_named(
    example_run: ExampleRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "nsight_compute", lambda: None)
    assert main(["kernel", "--run", str(example_run.run), f"{TRANSPOSE}:{STORE}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'warpline doctor' shows how to get it" in line


def test_figures_land_on_the_kernels_lines(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "")
    (tmp_path / "r.ncu-rep").write_text("report")
    inside = read(tmp_path / "r.ncu-rep", nsight_module.find(ncu))
    assert (inside.name, inside.duration_ms, inside.memory_percent) == ("transpose_rows", 0.25, 93.0)
    load, store = inside.lines
    assert (load.line, load.used_percent) == (STORE - 1, 100.0)
    assert (store.line, store.used_percent) == (STORE, 12.5)
    assert store.stalls == {"long_scoreboard": 75.0}
    assert inside.advice == (("Uncoalesced", "store wider"),)


def test_a_table_of_it(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "")
    (tmp_path / "r.ncu-rep").write_text("report")
    shown = kernel_table(read(tmp_path / "r.ncu-rep", nsight_module.find(ncu)).with_texts(text_of))
    store = shown.rows[1]
    assert store.place == f"slow.py:{STORE}"
    assert store.source.startswith("tl.store(")
    assert store.memory == "4 of 32 bytes (12 %)"
    assert store.stalls == "long scoreboard 75 %"


@pytest.fixture
def looked_into(tmp_path: Path, example_run: ExampleRun, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a run, in a working folder where ncu is the one that is played."""
    runs_folder = tmp_path / "work/.warpline/runs"
    shutil.copytree(example_run.run, runs_folder / "1")
    ncu = fake_ncu(tmp_path, COLLECTS)
    monkeypatch.setattr(probe, "nsight_compute", lambda: ncu)
    monkeypatch.chdir(tmp_path / "work")
    return runs_folder / "1"


def test_what_is_found_is_kept_beside_the_run(looked_into: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs.kernels(looked_into) == ()
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    (kept,) = runs.kernels(looked_into)
    assert kept.name == "transpose_rows"
    assert kept.lines[1].text.startswith("tl.store(")
    assert "4 of 32 bytes (12 %)" in capsys.readouterr().out
    # Looked into again: in place of the first.
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    assert runs.kernels(looked_into) == (kept,)


def test_what_is_kept_holds_as_long_as_the_kernel_reads_the_same(looked_into: Path) -> None:
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    (kept,) = runs.kernels(looked_into)
    text = TRANSPOSE.read_text()
    assert kept.holds_for({str(TRANSPOSE): text}.get)
    assert not kept.holds_for({str(TRANSPOSE): text.replace("tl.store(", "tl.store( ")}.get)
    assert not kept.holds_for({str(TRANSPOSE): "\n" + text}.get)
    assert not kept.holds_for({}.get)


def test_what_another_warpline_kept_is_left_alone(looked_into: Path) -> None:
    assert main(["kernel", f"{TRANSPOSE}:{STORE}"]) == 0
    (path,) = looked_into.glob("kernel-*.json")
    path.write_text(path.read_text().replace('"format":1', '"format":2'))
    (looked_into / "kernel-0.json").write_text("{")
    assert runs.kernels(looked_into) == ()
    with pytest.raises(Problem, match="format 2"):
        _read(str(path))


def test_two_versions_side_by_side(
    looked_into: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tmp_path / "before.json"
    assert main(["kernel", "--json", str(before), f"{TRANSPOSE}:{STORE}"]) == 0
    capsys.readouterr()
    assert main(["kernel", "--against", str(before), "--json", "-", f"{TRANSPOSE}:{STORE}"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first == second == json.loads(before.read_text())
    assert main(["kernel", "--against", str(before), str(before)]) == 0
    assert "1.00x" in capsys.readouterr().out


def test_an_unreadable_report_is_a_problem(tmp_path: Path) -> None:
    ncu = fake_ncu(tmp_path, "")
    (tmp_path / "r.ncu-rep").write_text("junk")
    with pytest.raises(Problem, match="cannot be read: not a report"):
        read(tmp_path / "r.ncu-rep", nsight_module.find(ncu))


def test_no_more_launches_are_passed_over_than_there_are(
    looked_into: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that the run launched twice for certain: the second is looked at, not a sixth."""
    noted = f'echo "$@" > {tmp_path}/words\n' + COLLECTS
    (tmp_path / "ncu").write_text(f"#!/bin/sh\n{noted}\n")
    profile = pipeline.profile_of(looked_into)
    manifest = replace(profile.manifest, captured=((0, 1), (1, 2)), timed_ns=())
    cost = replace(profile.lines[0], kernels=(Kernel("transpose_rows", "forward", 1.0, 0.5),))
    seen = replace(profile, manifest=manifest, lines=(cost,))
    monkeypatch.setattr(pipeline, "profile_of", lambda run: seen)
    assert main(["kernel", "--json", str(tmp_path / "out.json"), f"{TRANSPOSE}:{STORE}"]) == 0
    words = (tmp_path / "words").read_text().split()
    assert words[words.index("--launch-skip") + 1] == "1"
