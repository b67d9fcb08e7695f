"""How long after the last captured step is the report there?

    python benchmarks/report_time.py [--events 65000 1000000] [--large] [--python PATH] [--rounds 3]

For each size a real training loop is captured with as many steps as give that many trace events; with
``--large`` five steps, the usual number, have that many together, so fewer of them may be captured. The
clock runs from the end of the last captured step (as the runner stamped it) to the finished report. Of it:
until the run was written (torch's stop and export; a long capture on a CPU pauses for that now and then, so
only of what follows the last pause), and from then on, which is ours alone. Replacements are not tried: that
begins when a report is there, and has a budget of its own. Beside it: the most memory of the script's process
(or of another that we start, if it has more), and what torch.profiler's own stop and export take for all
these steps.
Goals: under 1 s for 65,000 events, under 5 s for 1,000,000.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from importing import descendants, memory_mb

from warpline import attribution, pipeline, runs, trace
from warpline.trace import decode
from warpline.wire import stages
from warpline.wire.messages import Progress
from warpline.wire.run import Request

GOALS_S = {65_000: 1.0, 1_000_000: 5.0}
EVENTS_A_STEP = 2_600  # of the loop below, on a CPU, with shapes and memory
EVENTS_A_PASS = 1_000  # of that: the forward and the backward pass, which a large step repeats

LOOP = """
import sys
import torch
torch.manual_seed(0)
torch.set_num_threads(1)  # on a busy machine threads wait for each other
net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(16)))
net.to("cuda" if torch.cuda.is_available() else "cpu")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=False)
x = torch.randn(32, 64, device=next(net.parameters()).device)
def step():
    optimizer.zero_grad()
    for _ in range(int(sys.argv[1])):
        loss = net(x).square().mean()
        loss.backward()
    optimizer.step()
"""
OURS = LOOP + "while True:\n    step()\n"
TORCHS = (
    LOOP
    + """
import json, time
from torch.profiler import ProfilerActivity, profile
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
for _ in range(5):
    step()
profiler = profile(activities=activities, record_shapes=True, profile_memory=True)
profiler.start()
for _ in range(int(sys.argv[2])):
    step()
begin = time.perf_counter()
profiler.stop()
stopped = time.perf_counter()
profiler.export_chrome_trace(sys.argv[3])
print(json.dumps([stopped - begin, time.perf_counter() - stopped]))
"""
)


@dataclass(frozen=True)
class Round:
    """Seconds."""

    events: int
    total: float
    writing: float
    ours: float
    reading: float
    attributing: float
    memory_mb: float
    torch_stop: float
    torch_export: float


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, nargs="+", default=sorted(GOALS_S))
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(
        "| events, captured | last step to report | until it is written | from then on "
        "| reading | attributing | MB | torch: stop | torch: export | goal |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    missed = False
    for events in options.events:
        rounds = [measured(events, options.python, options.large) for _ in range(options.rounds)]
        goal = GOALS_S.get(events)
        middle = statistics.median(one.total for one in rounds)
        missed |= goal is not None and middle > goal
        seconds = {
            field: spread([getattr(one, field) for one in rounds])
            for field in ("total", "writing", "ours", "reading", "attributing", "torch_stop", "torch_export")
        }
        *before, stop, export = seconds.values()
        memory = f"{statistics.median(one.memory_mb for one in rounds):.0f}"
        cells = [f"{events:,}, {rounds[0].events:,}", *before, memory, stop, export]
        print("| " + " | ".join([*cells, f"{goal:g} s" if goal else ""]) + " |", flush=True)
    return 1 if missed else 0


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


def measured(events: int, python: str, large: bool) -> Round:
    passes = max(1, round(events / 5 / EVENTS_A_PASS)) if large else 1
    steps = 5 if large else max(1, round(events / EVENTS_A_STEP))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stop, export = torchs(folder, passes, steps, python)
        with largest_mb() as memory:
            run, written, total = ours(folder, passes, steps, python)
        begin = time.perf_counter()
        found = trace.read(run)
        read = time.perf_counter()
        attribution.attribute(found)
        done = time.perf_counter()
        counts: list[int] = []
        decode.decode(runs.part(run, runs.TRACE), lambda piece: counts.append(len(piece)))
    timed = (total, written, total - written, read - begin, done - read)
    return Round(sum(counts), *timed, max(memory), stop, export)


@contextmanager
def largest_mb() -> Iterator[list[float]]:
    """What the largest process below this one has, in MB, again and again."""
    ended, found = threading.Event(), [0.0]

    def watch() -> None:
        while not ended.wait(0.1):
            found.append(max(map(memory_mb, descendants(os.getpid())[1:]), default=0.0))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        ended.set()
        watching.join()


def ours(folder: Path, passes: int, steps: int, python: str) -> tuple[Path, float, float]:
    """The run, and seconds after its last step: when it was written, when its report was there."""
    script = folder / "ours.py"
    script.write_text(OURS, encoding="utf-8")
    ready: list[int] = []
    written: list[int] = []

    def heard(progress: Progress) -> None:
        if progress.stage == stages.READING and not written:
            written.append(time.time_ns())

    run, _ = pipeline.profile(
        Request(
            target=str(script),
            argv=(str(passes),),
            python=python,
            cwd=str(folder),
            steps=steps,
            warmup=3,
            probe_s=0,
        ),
        folder=folder,
        on_progress=heard,
        on_report=lambda run, report: ready.append(time.time_ns()),
    )
    manifest = pipeline.profile_of(run).manifest
    last = manifest.captured[-1][1] + manifest.paused_ns
    return run, (written[0] - last) / 1e9, (ready[0] - last) / 1e9


def torchs(folder: Path, passes: int, steps: int, python: str) -> tuple[float, float]:
    script = folder / "torchs.py"
    script.write_text(TORCHS, encoding="utf-8")
    done = subprocess.run(
        [python, str(script), str(passes), str(steps), str(folder / "trace.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    stop, export = json.loads(done.stdout.splitlines()[-1])
    return stop, export


if __name__ == "__main__":
    sys.exit(main())
