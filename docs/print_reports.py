"""Puts printed reports into README.md and examples/*/README.md: nothing there is typed by hand.

    make readme

``<!-- report: SCRIPT -->`` with a code block below it gets what `warpline profile SCRIPT` prints on this
machine; for a case of which a run on a GPU is kept (tests/captures), what `warpline show` prints of that
run. ``<!-- gain: CASE -->`` with a table below it gets what `make gpu-test` measured when the runs were
recorded. Nothing else of a file changes. Run it where nothing else runs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "tests/captures"
BLOCK = re.compile(r"<!-- report: (\S+) -->\n```\n.*?```\n", re.DOTALL)
GAIN = re.compile(r"<!-- gain: (\S+) -->\n(?:\|.*\n)*")
#: Shown as a newcomer sees it, without a GPU.
ON_THIS_MACHINE = "examples/quickstart/slow.py"


def pages() -> list[Path]:
    """The files that show a report."""
    return [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md"))]


def printed(script: str) -> str:
    """What the command prints for ``script``, without the path of the run folder."""
    recording = CAPTURES / f"{Path(script).parent.name}.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        words = ["profile", "--run-dir", folder, script]
        if script != ON_THIS_MACHINE:
            with tarfile.open(recording) as packed:
                packed.extractall(folder, filter="data")
            words = ["show", folder]
        done = subprocess.run(
            [sys.executable, "-m", "warpline", *words],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return "".join(line + "\n" for line in done.stdout.splitlines() if not line.startswith("Run: "))


def gain(case: str) -> str:
    """One table of a slow and a fixed script, measured in turn; times are per sample of the slow one."""
    found = json.loads((CAPTURES / "gains.json").read_text())[case]
    low, high, drift = found["low"], found["high"], found["loss_drift"]
    cells = (
        f"{found['slow_step_ms']:.3g} ms",
        f"{found['slow_step_ms'] / found['speedup']:.3g} ms",
        f"{found['speedup']:.2f}",
        f"{low:.2f} to {high:.2f}",
        "no loss was seen" if drift is None else f"{drift:.1g}",
        f"{found['device']}, torch {found['torch']}",
    )
    head = ("`slow.py`, a step", "`fixed.py`, for as many samples", "times as fast", "95 % interval")
    rows = ((*head, "loss drift", "on"), ("---",) * len(cells), cells)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    reports: dict[str, str] = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for script in BLOCK.findall(text):
            if script not in reports:
                print(f"printing {script}")
                reports[script] = printed(script)
        renewed = BLOCK.sub(lambda m: f"<!-- report: {m[1]} -->\n```\n{reports[m[1]]}```\n", text)
        renewed = GAIN.sub(lambda m: f"<!-- gain: {m[1]} -->\n{gain(m[1])}", renewed)
        page.write_text(renewed, encoding="utf-8")


if __name__ == "__main__":
    main()
