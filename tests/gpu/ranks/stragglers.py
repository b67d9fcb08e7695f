"""DDP and FSDP on the GPUs here, with and without a planted slow rank: what `warpline ranks` says of each.

    python tests/gpu/ranks/stragglers.py [RANKS] [--only ddp|fsdp] [--none] [--keep DIR]

Four profiles of ``tests/ranks/scripts/job.py`` under torchrun (RANKS of them, 2); ``--only`` and ``--none``
(no slow rank) leave some out. Prints a line for each and exits with 1 if a planted rank or its line is not
found, or one is reported where none was planted. ``--keep`` keeps the runs, to be read elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
JOB = ROOT / "tests" / "ranks" / "scripts" / "job.py"
SLOW = 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Planted slow ranks on the GPUs here.")
    parser.add_argument("ranks", type=int, nargs="?", default=2)
    parser.add_argument("--only", choices=["ddp", "fsdp"])
    parser.add_argument("--none", action="store_true", help="only without a slow rank")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args()
    ranks, wrong = options.ranks, 0
    for kind in ("ddp", "fsdp") if options.only is None else (options.only,):
        for slow in (None,) if options.none else (SLOW, None):
            begin = time.monotonic()
            with contextlib.ExitStack() as stack:
                if options.keep is None:
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                else:
                    folder = Path(options.keep) / f"{kind}-{slow}"
                    folder.mkdir(parents=True)
                problems = problems_of(folder, kind, slow, ranks)
            wrong += bool(problems)
            said = "; ".join(problems) or "as planted"
            print(f"{kind}, slow rank {slow}: {said} ({time.monotonic() - begin:.0f} s)", flush=True)
    return 1 if wrong else 0


def problems_of(folder: Path, kind: str, slow: int | None, ranks: int) -> list[str]:
    launcher = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node {ranks}"
    options = (
        "--python",
        sys.executable,
        "--launcher",
        launcher,
        "--run-dir",
        str(folder),
        "--timeout",
        "90",
    )
    script = (str(JOB), kind, *([] if slow is None else [str(slow)]))
    done = warpline("profile", *options, *script)
    if done.returncode:
        return [f"profile: {done.stderr[-1500:]}"]
    (run,) = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    done = warpline("ranks", str(run), "--json", str(folder / "ranks.json"))
    if done.returncode:
        return [f"ranks: {done.stderr[-1500:]}"]
    found = json.loads((folder / "ranks.json").read_text())
    print(done.stdout, flush=True)
    late = found["straggler"]
    problems = [] if found["ranks"] == list(range(ranks)) else [f"ranks {found['ranks']}"]
    if slow is None:
        return problems + ([f"rank {late['rank']} is said to be slow"] if late else [])
    if late is None or late["rank"] != slow:
        return [*problems, f"the slow rank is not found: {found['notes']}"]
    text = JOB.read_text().splitlines()[late["line"] - 1] if late["line"] else ""
    return problems if "# more" in text else [*problems, f"its line is not found, but {text.strip()!r}"]


def warpline(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "server"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "warpline", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=110)


if __name__ == "__main__":
    sys.exit(main())
