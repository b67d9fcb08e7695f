"""Do ``fix --measure`` and ``tune`` end within their budget, whatever the script does?

    python benchmarks/command_endings.py [--budget 20] [--cores 1 2 4 16] [--jobs 16] [--within 480]
                                         [--only NAME ...] [--json FILE]

Each script is profiled once, and then given to both commands, in processes that may use only so many cores
(their affinity). Of more cores than there are, the commands are told that they are there: that decides what
is started ahead, not how quick anything is. ``tune`` finds no run and has to profile within its budget.
As many scripts are tested side by side as ``--jobs`` has cores for, but four of them at least. On 16 cores
``--cores 1 4 --jobs 16`` and ``--cores 2 16 --jobs 16`` take seven minutes each. Prints how long each
command took, and exits with 1 if one took more than its budget and a tenth, failed, or left a process
behind. No script is begun after ``--within`` seconds less what one takes; those are listed as not run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "server"))

from ending_scripts import left_over, scripts  # beside this file

PROFILE_S = 60.0
HANGS = 3.0
SHARE = 4  # so many scripts at a time, even where they have to share their cores
PIN = (
    "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(','))); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)
#: Notes when the command begins: starting Python, and what this imports, is no part of it.
TELL = (
    "import sys, time; from warpline.measure import timed; count = int(sys.argv.pop(1)); "
    "timed.cores = lambda: count; from warpline.__main__ import main; "
    "print(time.monotonic(), file=open('began', 'w'), flush=True); sys.exit(main())"
)


@dataclass
class Row:
    """One command on one script; ``took_s`` from its start to its end."""

    script: str
    command: str
    cores: int
    budget_s: float
    took_s: float = 0.0
    within: bool = False
    said: str = ""


def test(name: str, text: str, cores: list[int], told: int, budget_s: float) -> list[Row]:
    """Both commands on one script, in a folder of its own. ``told``: how many cores they believe to have."""
    with tempfile.TemporaryDirectory(prefix="warpline-endings-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "train.py")
        path.write_text(text)
        (path.parent / "pyproject.toml").touch()
        ranks = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2"
        words = ["--launcher", ranks] if name == "launcher" else []
        run(["profile", *words, str(path)], folder, cores, PROFILE_S)
        budget = ["--budget", f"{budget_s:g}"]
        found = []
        for command in (
            ["fix", "--measure", *budget, *words, str(path)],
            ["tune", "--run-dir", str(path.parent / "other"), *budget, *words, str(path)],
        ):
            out = path.parent / f"{command[0]}.json"
            command[1:1] = ["--json", str(out)]
            said, status, seconds = run(command, folder, cores, HANGS * budget_s + 30, told)
            if out.exists():
                tried = json.loads(out.read_text())["candidates"]
                timed = sum(one["speedup"] is not None for one in tried)
                said = f"{timed} of {len(tried)} timed; {said}"
            row = Row(name, command[0], told, budget_s, seconds, said=said)
            row.within = status in (0, 1, 2) and seconds <= 1.1 * budget_s and "LEFT" not in said
            found.append(row)
        return found


def run(
    words: list[str], folder: str, cores: list[int], limit_s: float, told: int = 0
) -> tuple[str, int, float]:
    """``(its last line, exit status, seconds)`` of one command; what it leaves behind is killed."""
    pinned = [sys.executable, "-c", PIN, ",".join(map(str, cores))]
    began = time.monotonic()
    process = subprocess.Popen(
        [*pinned, sys.executable, "-c", TELL, str(told or len(cores)), *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "server"), "OMP_NUM_THREADS": str(min(4, len(cores)))},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
        lines = [line.strip() for line in (err + "\n" + out).splitlines() if line.strip()]
        said = lines[-1] if lines else ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        said = "HANGS"
    ended = time.monotonic()  # of the same clock as the command's
    with contextlib.suppress(OSError, ValueError):
        began = float(Path(folder, "began").read_text())
    seconds = ended - began
    left = left_over(process.pid)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(pid, signal.SIGKILL)
    return said + f" (LEFT {len(left)} processes)" * bool(left), process.returncode, seconds


def measured(options: argparse.Namespace, cores: int, ends: float) -> list[Row]:
    """All scripts with ``cores`` cores each, side by side as far as there are cores for them."""
    there = sorted(os.sched_getaffinity(0))
    told, cores = cores, min(cores, len(there))
    apart = max(1, min(options.jobs, len(there)) // cores)
    side_by_side = max(apart, min(SHARE, options.jobs))
    free: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    for at in range(side_by_side):
        first = at % apart * cores
        free.put(there[first : first + cores])
    rows: list[Row] = []
    lock = threading.Lock()

    def work(name: str, text: str) -> None:
        mine = free.get()
        try:
            if time.monotonic() > ends - 2.2 * options.budget - 15:
                found = [Row(name, "both", told, options.budget, said="not run: no time left")]
            else:
                found = test(name, text, mine, told, options.budget)
        finally:
            free.put(mine)
        with lock:
            rows.extend(found)
            for row in found:
                show(row)

    with ThreadPoolExecutor(side_by_side) as pool:
        chosen = {name: text for name, text in scripts().items() if not options.only or name in options.only}
        list(pool.map(work, chosen, chosen.values()))  # a failure of ours ends the benchmark: no row is lost
    return rows


def show(row: Row) -> None:
    word = "yes" if row.within else "NO"
    cells = [row.script, row.command, row.cores, f"{row.budget_s:g}", f"{row.took_s:.1f}", word]
    print(f"| {' | '.join(map(str, cells))} | {row.said[:110].replace('|', '/')} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 16])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cores to use at a time")
    parser.add_argument("--within", type=float, default=480.0, help="seconds for everything (480)")
    parser.add_argument("--only", nargs="+", default=[], choices=list(scripts()), metavar="NAME")
    parser.add_argument("--json", type=Path, help="write all rows here as well")
    options = parser.parse_args()
    ends = time.monotonic() + options.within
    print("| script | command | cores | budget s | took s | within | said |\n|---|---|---|---|---|---|---|")
    rows = [row for cores in options.cores for row in measured(options, cores, ends)]
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    done = [row for row in rows if row.command != "both"]
    print(f"\n{sum(row.within for row in done)} of {len(done)} within their budget and a tenth")
    print(f"{len(rows) - len(done)} scripts not run")
    return 0 if done and all(row.within for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
