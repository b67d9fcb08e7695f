"""What the machine can measure is asked of the real interpreter."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from tests.conftest import environment, warpline
from warpline.capture import probe
from warpline.commands import doctor


def test_this_interpreter_is_fit(tmp_path: Path) -> None:
    done = warpline("doctor", "--python", sys.executable, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"✔ your interpreter: Python {platform.python_version()} at " in done.stdout
    assert "✔ torch: " in done.stdout
    assert "✔ exact lines: " in done.stdout
    assert f"✔ runs: {tmp_path}" in done.stdout


def test_an_interpreter_without_torch_is_not(tmp_path: Path) -> None:
    """Ours, but with a torch in front that cannot be imported."""
    (tmp_path / "torch.py").write_text("raise ImportError('no torch for you')\n")
    done = warpline(
        "doctor",
        "--python",
        sys.executable,
        cwd=tmp_path,
        PYTHONPATH=f"{tmp_path}:{environment()['PYTHONPATH']}",
    )
    assert done.returncode == 2
    assert "✖ torch: ImportError: no torch for you" in done.stdout
    assert "--python PATH" in done.stdout


def test_no_interpreter_at_all(tmp_path: Path) -> None:
    done = warpline("doctor", "--python", "/no/such/python", cwd=tmp_path)
    assert done.returncode == 2
    assert "✖ your interpreter: there is no Python interpreter /no/such/python" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("restricted", "module", "answer", "said"),
    [
        (None, True, "yes", ""),
        (None, False, "part", "ncu-report from PyPI"),
        (True, True, "part", "ERR_NVGPUCTRPERM"),
    ],
)
def test_what_keeps_one_from_looking_inside_kernels(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    restricted: bool | None,
    module: bool,
    answer: str,
    said: str,
) -> None:
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\n")
    ncu.chmod(0o755)
    if module:
        (tmp_path / "extras/python").mkdir(parents=True)
        (tmp_path / "extras/python/ncu_report.py").touch()
    monkeypatch.setattr(probe, "nvidia_device", lambda: True)
    monkeypatch.setattr(probe, "nsight_compute", lambda: ncu)
    monkeypatch.setattr(probe, "counters_restricted", lambda: restricted)
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    check = doctor._nsight()
    assert check.answer == answer
    assert said in check.remedy
