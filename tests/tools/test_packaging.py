"""What ``pip install .`` installs, and that it leaves nothing in the tree."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT


def listed(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_wheel_has_every_file_of_the_package_and_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hatchling import build

    tree, out = tmp_path / "tree", tmp_path / "out"
    shutil.copytree(
        ROOT / "server", tree / "server", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copyfile(ROOT / name, tree / name)
    before = listed(tree)
    monkeypatch.chdir(tree)
    wheel = out / build.build_wheel(str(out))
    assert listed(tree) == before
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if name.startswith("warpline/")}
    assert names == {name.removeprefix("server/") for name in before if name.startswith("server/warpline/")}
