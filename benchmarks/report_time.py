"""How long after the last captured step is the report there?

    python benchmarks/report_time.py [--events 65000 1000000] [--python PATH] [--rounds 3]

For each size a real training loop is captured with as many steps as give that many trace events; the
clock runs from the end of the last captured step (as the runner stamped it) to the finished report. Of it:
until the run was written (torch's stop and export, and on a CPU a window in which lines are sampled), and
from then on, which is ours alone. Replacements are not tried: that begins when a report is there, and has a
budget of its own. Beside it: what torch.profiler's own stop and export take for the same steps.
Goals: under 1 s for 65,000 events, under 5 s for 1,000,000.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline import attribution, pipeline, runs, trace
from warpline.trace import decode
from warpline.wire import stages
from warpline.wire.messages import Progress
from warpline.wire.run import Request

GOALS_S = {65_000: 1.0, 1_000_000: 5.0}
EVENTS_A_STEP = 2_600  # of the loop below, on a CPU, with shapes and memory

LOOP = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)  # on a busy machine threads wait for each other
net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(16)))
net.to("cuda" if torch.cuda.is_available() else "cpu")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=False)
x = torch.randn(32, 64, device=next(net.parameters()).device)
def step():
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
"""
OURS = LOOP + "while True:\n    step()\n"
TORCHS = (
    LOOP
    + """
import json, sys, time
from torch.profiler import ProfilerActivity, profile
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
for _ in range(5):
    step()
profiler = profile(activities=activities, record_shapes=True, profile_memory=True)
profiler.start()
for _ in range(int(sys.argv[1])):
    step()
begin = time.perf_counter()
profiler.stop()
stopped = time.perf_counter()
profiler.export_chrome_trace(sys.argv[2])
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
    torch_stop: float
    torch_export: float


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, nargs="+", default=sorted(GOALS_S))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(
        "| events | last step to report | until it is written | from then on "
        "| reading | attributing | torch: stop | torch: export | goal |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    missed = False
    for events in options.events:
        rounds = [measured(events, options.python) for _ in range(options.rounds)]
        goal = GOALS_S.get(events)
        middle = statistics.median(one.total for one in rounds)
        missed |= goal is not None and middle > goal
        cells = [f"{rounds[0].events:,}"] + [
            spread([getattr(one, field) for one in rounds])
            for field in ("total", "writing", "ours", "reading", "attributing", "torch_stop", "torch_export")
        ]
        print("| " + " | ".join([*cells, f"{goal:g} s" if goal else ""]) + " |", flush=True)
    return 1 if missed else 0


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


def measured(events: int, python: str) -> Round:
    steps = max(1, round(events / EVENTS_A_STEP))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stop, export = torchs(folder, steps, python)
        run, written, total = ours(folder, steps, python)
        begin = time.perf_counter()
        found = trace.read(run)
        read = time.perf_counter()
        attribution.attribute(found)
        done = time.perf_counter()
        counts: list[int] = []
        decode.decode(runs.part(run, runs.TRACE), lambda piece: counts.append(len(piece)))
    return Round(sum(counts), total, written, total - written, read - begin, done - read, stop, export)


def ours(folder: Path, steps: int, python: str) -> tuple[Path, float, float]:
    """The run, and seconds after its last step: when it was written, when its report was there."""
    script = folder / "ours.py"
    script.write_text(OURS, encoding="utf-8")
    ready: list[int] = []
    written: list[int] = []

    def heard(progress: Progress) -> None:
        if progress.stage == stages.READING and not written:
            written.append(time.time_ns())

    run, _ = pipeline.profile(
        Request(target=str(script), python=python, cwd=str(folder), steps=steps, warmup=3, probe_s=0),
        folder=folder,
        on_progress=heard,
        on_report=lambda run, report: ready.append(time.time_ns()),
    )
    last = pipeline.profile_of(run).manifest.captured[-1][1]
    return run, (written[0] - last) / 1e9, (ready[0] - last) / 1e9


def torchs(folder: Path, steps: int, python: str) -> tuple[float, float]:
    script = folder / "torchs.py"
    script.write_text(TORCHS, encoding="utf-8")
    done = subprocess.run(
        [python, str(script), str(steps), str(folder / "trace.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    stop, export = json.loads(done.stdout.splitlines()[-1])
    return stop, export


if __name__ == "__main__":
    sys.exit(main())
