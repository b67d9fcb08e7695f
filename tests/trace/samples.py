"""Public sample traces: those of HTA's tests and of the TensorBoard plugin. They are not in this repository.

    python tests/trace/samples.py      fetches them (make samples)

They lie in ``.cache/samples``, or where ``WARPLINE_SAMPLE_TRACES`` says.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("WARPLINE_SAMPLE_TRACES", ROOT / ".cache" / "samples"))
#: Repository, commit, folder. The commit of kineto is the last one with the plugin's samples.
SOURCES = {
    "hta": (
        "https://github.com/facebookresearch/HolisticTraceAnalysis",
        "f4d0062c382f42bd8a74838bcdad1916c7d5d2da",
        "tests/data",
    ),
    "tb_plugin": (
        "https://github.com/pytorch/kineto",
        "041e7ce99f1562dd81232ee58b7c454ef16bfae2",
        "tb_plugin/samples",
    ),
}
MISSING = "sample traces are not there, and their tests are left out; get them with: make samples"
LIMIT_S = 600.0  # for one repository


def missing() -> list[str]:
    return [name for name in SOURCES if not (FOLDER / name).is_dir()]


def fetch(name: str) -> None:
    """Leave the files of one source in a folder of that name. Raises CalledProcessError, TimeoutExpired."""
    repository, commit, folder = SOURCES[name]
    with tempfile.TemporaryDirectory() as bare:
        git("init", "--quiet", "--bare", bare)
        git("-C", bare, "fetch", "--quiet", "--depth", "1", repository, commit)
        files = git("-C", bare, "archive", f"{commit}:{folder}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as place, tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall(Path(place, name), filter="data")
        Path(place, name).rename(FOLDER / name)


def git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], stdout=subprocess.PIPE, check=True, timeout=LIMIT_S)
    return done.stdout


def main() -> int:
    for name in missing():
        print(f"fetching {name}: {SOURCES[name][0]}", flush=True)
        try:
            fetch(name)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name} could not be fetched: {error}", file=sys.stderr)
    return 1 if missing() else 0


if __name__ == "__main__":
    sys.exit(main())
