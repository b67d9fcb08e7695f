"""Two profiles at once on one GPU: their windows follow each other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "scripts/channels_last.py"


def test_two_profiles_of_a_script_measure_one_after_the_other(tmp_path: Path) -> None:
    started = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(SCRIPT, folder)
        command = [sys.executable, "-m", "warpline", "profile", "--json", "report.json", SCRIPT.name]
        started.append(
            subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ,
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        )
    told = [process.communicate(timeout=240)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], told
    assert sum("waiting for another profile on this GPU" in text for text in told) == 1, told
    alone, waited = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("one", "two"))
    assert 0.8 < alone["steps"]["step_ms"] / waited["steps"]["step_ms"] < 1.25
