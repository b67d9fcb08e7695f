"""A release writes one version everywhere, and a dry run writes nothing."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warpline
from tests.conftest import ROOT
from tools import release

DAY = datetime.date(2027, 1, 2)
FILES = (release.SOURCE, release.PACKAGE, release.LOCK, release.CHANGELOG)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that a release changes, with an open section for 9.0.0."""
    for path in FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, tmp_path / path)
    changelog = tmp_path / release.CHANGELOG
    changelog.write_text("# Changes\n\n## 9.0.0, not released\n\n- One.\n\n## 0.1.0, 2026-12-01\n")
    return tmp_path


def texts(tree: Path) -> dict[str, str]:
    return {path: (tree / path).read_text(encoding="utf-8") for path in FILES}


def test_the_version_is_the_same_everywhere() -> None:
    package, lock = (json.loads((ROOT / one).read_text()) for one in (release.PACKAGE, release.LOCK))
    versions = {package["version"], lock["version"], lock["packages"][""]["version"]}
    assert versions == {warpline.__version__}


def test_a_release_writes_its_version_everywhere_and_nothing_else(tree: Path) -> None:
    before, new = texts(tree), release.changes(tree, "9.0.0", DAY)
    assert set(new) == set(FILES)
    assert "\n## 9.0.0, 2027-01-02\n" in new[release.CHANGELOG]
    for path, text in new.items():
        pairs = zip(before[path].splitlines(), text.splitlines(), strict=True)
        changed = [after for one, after in pairs if one != after]
        assert len(changed) == (2 if path == release.LOCK else 1)
        assert all("9.0.0" in line for line in changed)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("9.0", "not a version"),
        ("0.0.9", "is older than"),
        ("8.0.0", "no section '## 8.0.0, not released'"),
    ],
)
def test_what_is_refused(version: str, why: str, tree: Path) -> None:
    with pytest.raises(release.Refused, match=why):
        release.changes(tree, version, DAY)


def test_a_dry_run_shows_all_and_changes_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "ROOT", tree)
    before = texts(tree)
    assert release.main(["9.0.0", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert '+__version__ = "9.0.0"' in shown
    assert [line for line in shown.splitlines() if line.startswith(("make", "git"))] == [
        "make test",
        "git commit --all --message Release 9.0.0",
        "git tag v9.0.0",
    ]
    assert texts(tree) == before


@pytest.mark.process
def test_after_a_failure_the_files_are_as_before(tree: Path) -> None:
    before = texts(tree)
    with pytest.raises(subprocess.CalledProcessError):
        release.make(
            tree, release.changes(tree, "9.0.0", DAY), [(sys.executable, "-c", "raise SystemExit(1)")]
        )
    assert texts(tree) == before
