"""What the editors are given: a workspace, the server's command, and a folder for what goes wrong."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.desk import HERE, LIMIT_S, ROOT, Desk

#: Without links: what runs there is known by the folder that /proc names.
EDITORS = Path(os.environ.get("WARPLINE_EDITORS", ROOT / ".cache" / "editors")).resolve()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and "editors" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.editor)
            item.add_marker(pytest.mark.timeout(7.5 * LIMIT_S))


@pytest.fixture(scope="session")
def editors() -> Path:
    """The folder of the installed editors."""
    check = subprocess.run([HERE / "install.sh", "--check"], capture_output=True, text=True)
    if check.returncode:
        pytest.fail(check.stderr.strip())
    return EDITORS


@pytest.fixture
def desk(request: pytest.FixtureRequest, editors: Path) -> Iterator[Desk]:
    out = editors / "runs" / f"{request.path.stem}-{request.node.name}".replace("[", "-").replace("]", "")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, mode=0o700)  # Emacs puts its socket into no other
    workspace = out / "workspace"
    shutil.copytree(HERE / "workspace", workspace, ignore=shutil.ignore_patterns("__pycache__"))
    command = out / "bin" / "warpline"
    command.parent.mkdir()
    path = f"{ROOT / 'server'}${{PYTHONPATH:+:$PYTHONPATH}}"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m warpline "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("TMUX", "VIRTUAL_ENV")},
        "PATH": f"{command.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
    }
    yield Desk(out, workspace, environment)
    if not getattr(request.node, "failed", False):
        subprocess.run(["rm", "-rf", out])  # tens of thousands of small files: much quicker than shutil


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.failed = report.failed  # type: ignore[attr-defined]
    return report


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The extension without packages: its server's environment is made from the package index."""
    return packaged("universal")


@pytest.fixture(scope="session")
def platform_vsix() -> Path:
    """The extension with the packages for this machine, as it is published."""
    machine = "x64" if platform.machine() in ("x86_64", "AMD64") else "arm64"
    return packaged(f"{'darwin' if sys.platform == 'darwin' else 'linux'}-{machine}")


def packaged(target: str) -> Path:
    command = ["npm", "run", "--silent", "package", "--", target]
    environment = {**os.environ, "PYTHON": sys.executable}
    made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return ROOT / "dist" / f"warpline-{target}.vsix"
