"""Makes the recorded runs again: profiles each script on this machine's GPU and packs its run.

    python tests/captures/record.py OUT [NAME...]

OUT gets NAME.tar.xz for each script, with its run folder as the capture left it, and reports.txt with
what was printed. The scripts are the examples and those below tests/gpu. Takes about 12 s a script.
"""

from __future__ import annotations

import argparse
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What later stages make of a run is made anew from the recording.
MADE_LATER = ("report.json", "profile.json")


def scripts() -> dict[str, Path]:
    """The scripts of which runs are recorded, by the names of their recordings."""
    found = {path.parent.name: path for path in sorted(ROOT.glob("examples/*/slow.py"))}
    found |= {f"{path.parent.name}-fixed": path for path in sorted(ROOT.glob("examples/*/fixed.py"))}
    for folder in ("tests/gpu/scripts", "tests/gpu/well_made"):
        found |= {path.stem: path for path in sorted((ROOT / folder).glob("*.py"))}
    return found


def record(name: str, script: Path, out: Path) -> bool:
    """Profile ``script`` and pack its run as ``out/name.tar.xz``; whether there was a run."""
    began = time.monotonic()
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    options = ["--steps", "3", "--timeout", "100"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "warpline",
                "profile",
                *options,
                "--run-dir",
                folder,
                script.relative_to(ROOT),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "150"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        runs = [manifest.parent for manifest in Path(folder).glob("*/manifest.json")]
        seconds = time.monotonic() - began
        with (out / "reports.txt").open("a") as log:
            log.write(f"\n##### {name}: exit status {done.returncode}, {seconds:.1f} s\n{done.stdout}")
        print(f"{name}: exit status {done.returncode}, {len(runs)} run, {seconds:.1f} s", flush=True)
        if runs:
            packed = tarfile.open(out / f"{name}.tar.xz", "w:xz", preset=9 | lzma.PRESET_EXTREME)
            with packed:
                for file in sorted(runs[0].iterdir()):
                    if file.name not in MADE_LATER:
                        packed.add(file, file.name)
    return bool(runs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    known = scripts()
    missed = [name for name in options.names or known if not record(name, known[name], options.out)]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
