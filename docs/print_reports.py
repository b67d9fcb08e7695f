"""Puts what `warpline profile` prints on this machine into README.md and examples/*/README.md.

    make readme

A report stands in a file between ``<!-- report: SCRIPT -->`` with a code block below it. Nothing else
of the file changes. Run it where nothing else runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- report: (\S+) -->\n```\n.*?```\n", re.DOTALL)


def pages() -> list[Path]:
    """The files that show a report."""
    return [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md"))]


def printed(script: str) -> str:
    """What the command prints for ``script``, without the path of the run folder."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "warpline", "profile", "--run-dir", folder, script],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return "".join(line + "\n" for line in done.stdout.splitlines() if not line.startswith("Run: "))


def main() -> None:
    reports: dict[str, str] = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for script in BLOCK.findall(text):
            if script not in reports:
                print(f"profiling {script}")
                reports[script] = printed(script)
        renewed = BLOCK.sub(lambda m: f"<!-- report: {m[1]} -->\n```\n{reports[m[1]]}```\n", text)
        page.write_text(renewed, encoding="utf-8")


if __name__ == "__main__":
    main()
