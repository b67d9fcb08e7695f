"""Puts printed reports into README.md and examples/*/README.md: nothing there is typed by hand.

    make readme

``<!-- report: SCRIPT -->`` with a code block below it gets what `warpline profile SCRIPT` prints on this
machine; for a case of which a run on a GPU is kept (tests/captures), what `warpline show` prints of that
run. ``<!-- gain: CASE -->`` with a table below it gets what `make gpu-test` measured when the runs were
recorded, or without that the two runs' own step times; ``<!-- fixes: CASE -->`` what
benchmarks/predictions.py measured of the case's quick fixes. Nothing else of a file changes. Run it where
nothing else runs.
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
from typing import Any

from warpline.model import units

ROOT = Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "tests/captures"
BLOCK = re.compile(r"<!-- report: (\S+) -->\n```\n.*?```\n", re.DOTALL)
GAIN = re.compile(r"<!-- gain: (\S+) -->\n(?:\|.*\n)*")
FIXES = re.compile(r"<!-- fixes: (\S+) -->\n(?:\|.*\n)*")
#: Of a kept run: its script may have other comments by now.
CHANGED = re.compile(r"^Note: .* was changed after the run:.*\n(?:(?!Note: ).+\n)*", re.MULTILINE)
#: Shown as a newcomer sees it, without a GPU.
ON_THIS_MACHINE = "examples/quickstart/slow.py"
#: Samples in a step of ``fixed.py``, in steps of ``slow.py``; 1 where none stands.
SAMPLES = json.loads((ROOT / "examples/samples_per_step.json").read_text())


def pages() -> list[Path]:
    """The files that show a report."""
    return [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md"))]


def unpack(name: str, folder: str, script: str = "") -> None:
    """The kept run ``name``; with ``script``, its path below ROOT, as if recorded in this clone."""
    with tarfile.open(CAPTURES / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    recorded = json.loads(Path(folder, "manifest.json").read_text())["script"].removesuffix(script)
    for part in Path(folder).glob("*.json") if script else ():
        if part.name != "trace.json":
            part.write_text(part.read_text().replace(f'"{recorded}', f'"{ROOT}/'))


def printed(script: str) -> str:
    """What the command prints for ``script``, without the path of the run folder."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["profile", "--run-dir", folder, script]
        if script != ON_THIS_MACHINE:
            unpack(Path(script).parent.name, folder, script)
            words = ["show", folder]
        done = subprocess.run(
            [sys.executable, "-m", "warpline", *words],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    text = "".join(line + "\n" for line in done.stdout.splitlines() if not line.startswith("Run: "))
    text = CHANGED.sub("", text)
    return excerpt(text) if script == ON_THIS_MACHINE else text


def excerpt(text: str) -> str:
    """The head, two functions and the first finding, for the front page; ``…`` marks what is left out."""
    lines, _, rest = text.partition("\nFindings\n")
    findings, *end = rest.split("\n\n")
    first = re.split(r"\n(?=[▲●·] )", findings)[0]
    return "\n\n".join([*lines.split("\n\n")[:3], "…", f"Findings\n{first}\n…", *end])


def shown(name: str) -> dict[str, Any]:
    """The JSON report of a run that is kept."""
    with tempfile.TemporaryDirectory() as folder:
        unpack(name, folder)
        words = [sys.executable, "-m", "warpline", "show", folder, "--json", "-"]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def gain(case: str) -> str:
    """One table of a slow and a fixed script; times are for as many samples as a step of the slow one has."""
    known = json.loads((CAPTURES / "gains.json").read_text())
    if case in known:
        found = known[case]
        slow, fixed = found["slow_step_ms"], found["slow_step_ms"] / found["speedup"]
        interval = f"{found['low']:.2f} to {found['high']:.2f}"
        drift = "no loss was seen" if found["loss_drift"] is None else f"{found['loss_drift']:.1g}"
        machine = f"{found['device']}, torch {found['torch']}"
    else:
        reports = [shown(name) for name in (case, f"{case}-fixed")]
        slow, fixed = (report["steps"]["step_ms"] for report in reports)
        fixed /= SAMPLES.get(case, 1.0)
        interval, drift = "none: the two kept runs, not in turn", "not compared"
        place = reports[0]["environment"]
        machine = f"{place['device']['name']}, torch {place['torch']}"
    head = ("`slow.py`, a step", "`fixed.py`, for as many samples", "gain", "95 % interval")
    cells = (f"{slow:.3g} ms", f"{fixed:.3g} ms", units.gain(slow / fixed), interval, drift, machine)
    rows = ((*head, "loss drift", "on"), ("---",) * len(cells), cells)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def fixes(case: str) -> str:
    """Each quick fix that was predicted, applied and timed on the H200 (benchmarks/predictions.py)."""
    rows = [("fix", "predicted", "measured", "95 % interval", "loss drift"), ("---",) * 5]
    for row in json.loads((CAPTURES / "predictions.json").read_text()):
        if row["script"] == f"examples/{case}/slow.py" and row["speedup"]:
            interval = f"{row['low']:.2f} to {row['high']:.2f}" if row["low"] is not None else "one round"
            drift = "no loss was seen" if row["loss_drift"] is None else f"{row['loss_drift']:.1g}"
            cells = (units.gain(row["predicted"]), units.gain(row["speedup"]), interval, drift)
            rows.append((f"{row['fix']} (`{row['rule']}`)", *cells))
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
        renewed = FIXES.sub(lambda m: f"<!-- fixes: {m[1]} -->\n{fixes(m[1])}", renewed)
        page.write_text(renewed, encoding="utf-8")


if __name__ == "__main__":
    main()
