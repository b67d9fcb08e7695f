"""Do ``fix --measure`` and ``tune`` end within their budget, whatever the script does?

    python benchmarks/command_endings.py [--budget 20] [--cores 1 2 4 16] [--jobs 16] [--within 480]
                                         [--only NAME ...] [--json FILE]

Each script is profiled once, and then given to both commands, in processes that may use only so many cores
(their affinity; as many as there are, at most). ``tune`` finds no run and has to profile within its budget.
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

from warpline.capture import tree

#: Starting Python before our first line runs, which no clock of ours sees.
STARTUP_S = 0.5
PROFILE_S = 60.0
HANGS = 3.0
SHARE = 4  # so many scripts at a time, even where they have to share their cores
PIN = (
    "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(','))); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)

#: ``CHANGED`` is true in a process that one of the fixes changed: other workers, no anomaly mode, or the
#: fused activation.
TRAIN = """\
import os, sys, time
BEFORE
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return SAMPLES
    def __getitem__(self, at):
        row = torch.full((256,), float(at % 7))
        for _ in range(100):
            row = row.sin()
        return row

def act(x):
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

def started(number):
    pass
WORKER

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(256, 1024)
        self.last = torch.nn.Linear(1024, 8)
    def forward(self, x):
        return self.last(act(self.first(x)))

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Rows(), batch_size=16, num_workers=WORKERS, worker_init_fn=started)
CHANGED = loader.num_workers != WORKERS or not torch.is_anomaly_enabled()
CHANGED = CHANGED or "gelu" in act.__code__.co_names
SETUP
done = 0
for epoch in range(10**9):
    for batch in loader:
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        STEP
        if done >= STEPS:
            break
    if done >= STEPS:
        break
AFTER
"""
LOCK = "import fcntl\nkept = open(__file__)\nfcntl.flock(kept, fcntl.LOCK_EX{})"
NAP = "time.sleep(10**6)"
DEAF = """\
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)"""
THREAD = f"import threading\nthreading.Thread(target=lambda: {NAP}).start()"
COMPILE = f"""\
def backend(graph, inputs):
    if CHANGED:
        {NAP}
    return graph.forward
model = torch.compile(model, backend=backend)"""
CHILD = f"import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; {NAP}'])"


def script(steps: int = 10**9, samples: int = 100_000, workers: int = 0, **parts: str) -> str:
    text = TRAIN.replace("SAMPLES", str(samples)).replace("WORKERS", str(workers))
    text = text.replace("STEPS", str(steps))
    for name in ("BEFORE", "WORKER", "SETUP", "STEP", "AFTER"):
        lines = parts.get(name.lower(), "pass").splitlines()
        at = next(line for line in text.splitlines() if line.strip() == name)
        indent = at.removesuffix(name)
        text = text.replace(at + "\n", "".join(f"{indent}{line}\n" for line in lines), 1)
    return text


def scripts() -> dict[str, str]:
    deaf = (
        "    " + DEAF.replace("\n", "\n    ") + "\n    import atexit\n    atexit.register(time.sleep, 10**6)"
    )
    return {
        "8 steps": script(8),
        "60 steps": script(60),
        "many steps": script(),
        "short epochs": script(samples=160),
        "epochs, 1 worker": script(samples=1600, workers=1),
        "4 workers": script(workers=4),
        "workers that ignore SIGTERM": script(workers=2, samples=1600, worker=f"def started(n):\n{deaf}"),
        "file lock": script(setup=LOCK.format(" | fcntl.LOCK_NB")),
        "waits for a file lock": script(before=LOCK.format("")),
        "launcher": script(),
        "endless compile": script(setup=COMPILE),
        "slow to start": script(before="time.sleep(6)"),
        "hangs in the first step": script(step=f"if CHANGED: {NAP}"),
        "hangs in a measured step": script(step=f"if CHANGED and done > 60: {NAP}"),
        "hangs at exit": script(60, after=NAP),
        "hangs in atexit": script(60, setup="import atexit\natexit.register(time.sleep, 10**6)"),
        "thread that never ends": script(60, setup=THREAD),
        "ignores Ctrl-C and SIGTERM": script(before=DEAF),
        "ends abruptly": script(60, after="os._exit(3)"),
        "leaves a child": script(300, setup=CHILD),
    }


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


def test(name: str, text: str, cores: list[int], budget_s: float) -> list[Row]:
    """Both commands on one script, in a folder of its own."""
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
            said, status, seconds = run(command, folder, cores, HANGS * budget_s + 30)
            if out.exists():
                tried = json.loads(out.read_text())["candidates"]
                timed = sum(one["speedup"] is not None for one in tried)
                said = f"{timed} of {len(tried)} timed; {said}"
            row = Row(name, command[0], len(cores), budget_s, seconds, said=said)
            row.within = status in (0, 1) and seconds <= 1.1 * budget_s + STARTUP_S and "LEFT" not in said
            found.append(row)
        return found


def run(words: list[str], folder: str, cores: list[int], limit_s: float) -> tuple[str, int, float]:
    """``(its last line, exit status, seconds)`` of one command; what it leaves behind is killed."""
    pinned = [sys.executable, "-c", PIN, ",".join(map(str, cores))]
    began = time.monotonic()
    process = subprocess.Popen(
        [*pinned, sys.executable, "-m", "warpline", *words],
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
    seconds = time.monotonic() - began
    left = left_over(process.pid)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(pid, signal.SIGKILL)
    return said + f" (LEFT {len(left)} processes)" * bool(left), process.returncode, seconds


def left_over(pid: int) -> list[int]:
    """Processes that the command ``pid`` should have ended."""
    found = []
    for entry in tree.processes():
        with contextlib.suppress(OSError):
            if f"{tree.MARK}={pid}-".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def measured(options: argparse.Namespace, cores: int, ends: float) -> list[Row]:
    """All scripts with ``cores`` cores each, side by side as far as there are cores for them."""
    there = sorted(os.sched_getaffinity(0))
    cores = min(cores, len(there))
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
                found = [Row(name, "both", cores, options.budget, said="not run: no time left")]
            else:
                found = test(name, text, mine, options.budget)
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
