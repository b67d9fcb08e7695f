"""Nsight Compute from the editor: offered at a finding, shown at the kernel's lines. ``ncu`` is played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fake_ncu import fake_ncu
from tests.lsp.client import Client, Error
from tests.lsp.folder import finding, write_run
from warpline import runs
from warpline.model.kernel import KernelInside, KernelLine
from warpline.model.profile import Profile
from warpline.model.report import Attributed, Device, Report, Steps, Unattributed

KERNEL = """\
import triton
import triton.language as tl

@triton.jit
def by_rows(x, y, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    values = tl.load(x + column)
    tl.store(y + column * rows, values)

by_rows[(8,)](x, y, 8, 8, BLOCK=8)  # 12 ms
"""
STORE = 7
LAUNCH = 9


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, Path]:
    """A script with a kernel, and its run on a GPU."""
    script = tmp_path / "train.py"
    script.write_text(KERNEL)
    found = finding(script, STORE + 1, "uncoalesced-access")
    run = write_run(tmp_path, {script: KERNEL}, findings=[found])
    report = runs.read(run, "report.json", Report)
    on_gpu = replace(report.environment, device=Device("cuda", "NVIDIA H200", 1))
    runs.write_json(run, "report.json", replace(report, environment=on_gpu))
    return script, run


def keep(script: Path, run: Path) -> None:
    line = KernelLine(str(script), STORE + 1, 800, 100, {"lg_throttle": 30.0})
    inside = KernelInside("by_rows", "NVIDIA H200", 0.8, 6.0, 90.0, 50.0, (line,))
    runs.keep_kernel(run, inside.with_texts(lambda path: KERNEL))


def test_the_action_is_offered_at_the_finding(
    project: tuple[Path, Path], connect: Callable[..., Client]
) -> None:
    client = connect(project[0].parent)
    uri = client.open(project[0])
    client.until(lambda: client.diagnostics(uri))
    (look,) = [a for a in client.actions(uri, STORE) if a["title"] == "Look inside with Nsight Compute"]
    assert look["command"]["command"] == "warpline.kernel"
    assert look["command"]["arguments"] == [{"uri": uri, "line": STORE}]
    # Not of a run on the CPU, and not where nothing is wrong.
    assert not client.actions(uri, 0)


def test_what_was_found_is_in_the_hover_until_the_line_changes(
    project: tuple[Path, Path], connect: Callable[..., Client]
) -> None:
    keep(*project)
    client = connect(project[0].parent)
    uri = client.open(project[0])
    client.until(lambda: client.diagnostics(uri))
    place = {"textDocument": {"uri": uri}, "position": {"line": STORE, "character": 6}}

    def words() -> str:
        answer = client.request("textDocument/hover", place)
        return answer["contents"]["value"] if answer else ""

    assert "4 of 32 bytes (12 %) used of each transferred sector" in words()
    assert "lg throttle 100 %" in words().replace("\\", "")
    client.edit(uri, (STORE, 4), (STORE, 4), "0; ")
    assert words() == ""


def test_what_keeps_one_from_looking_inside_is_said(
    project: tuple[Path, Path], connect: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, run = project
    bin_folder = script.parent / "bin"
    bin_folder.mkdir()
    fake_ncu(bin_folder, "echo '==ERROR== ERR_NVGPUCTRPERM'")
    monkeypatch.setenv("PATH", str(bin_folder), prepend=":")
    steps, none = Steps(5, 12.0, 12.0, 1.0, 90.0), Unattributed(0.0, 0.0)
    profile = Profile(runs.manifest(run), runs.facts(run), steps, (), none, Attributed(100.0, 100.0), {})
    runs.write_json(run, "profile.json", profile)
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.diagnostics(uri))
    with pytest.raises(Error, match="ERR_NVGPUCTRPERM"):
        client.request("warpline/kernel", {"uri": uri, "line": STORE})
    with pytest.raises(Error, match="launches no kernel"):
        client.request("warpline/kernel", {"uri": uri, "line": 0})
    assert runs.kernels(run) == ()
