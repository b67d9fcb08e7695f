"""Two profiles at once on one GPU: their windows follow each other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "scripts/channels_last.py"
#: Prints the step's milliseconds, and whether the profile waited.
PROFILE = """
import json, sys
from warpline import pipeline
from warpline.wire.run import Request

said = []
request = Request(sys.argv[1], python=sys.executable, probe_s=0.0)
_, report = pipeline.profile(request, on_progress=lambda told: said.append(told.message))
print(json.dumps([report.steps.step_ms, "waiting for another profile on this GPU" in said]))
"""


def test_two_profiles_of_a_script_measure_one_after_the_other(tmp_path: Path) -> None:
    started = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(SCRIPT, folder)
        command = [sys.executable, "-c", PROFILE, SCRIPT.name]
        started.append(subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE))
    told = [json.loads(process.communicate(timeout=240)[0].splitlines()[-1]) for process in started]
    (one_ms, one_waited), (two_ms, two_waited) = told
    assert one_waited != two_waited, told
    assert 0.8 < one_ms / two_ms < 1.25
