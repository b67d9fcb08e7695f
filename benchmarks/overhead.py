"""What measuring costs: the ratio of step time to the plain script's, for each way of measuring.

    python benchmarks/overhead.py [--python PATH] [--rounds 5] [--steps 30] [--only NAME]
                                  [--cores 0-5 --jobs 3] [--processor]

Three scripts (launch-bound, compute-bound, loader-bound), each run in turn as: plain; under warpline,
whose timing window, capture window and steps outside both are told apart; torch.profiler with shapes and
memory, without and with stacks; and a plain ``sys.settrace`` line profiler. All runs of a round follow one
another, and rounds are repeated, so that a slow moment of the machine hits all of them. Each script stamps
its own steps; the first steps are left out. Of each process's steps the quickest tenth counts: other work
on the machine only ever makes steps longer, and what measuring adds is in all of them. Goals: timing
window at most 1.01, outside both windows at most 1.01, capture at most 1.3 times what torch.profiler takes
with shapes and memory: the last column.

``--processor`` counts the processor time of the script's main thread instead, on a machine that others use:
on a CPU what measuring adds is work of that thread.

``--cores`` pins everything to some cores, ``--jobs 3`` runs the three scripts side by side on their share of
them (not on one GPU: they would share it). Operators use one thread for each core but one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pinned

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline import runs
from warpline.capture.launch import capture
from warpline.wire.run import Request

COLUMNS = ("timing window", "outside", "capture window", "torch.profiler", "with stacks", "settrace")
WARMUP = 5
PAUSE = 5.0  # times the median step; a pause takes tenths of a second
MOST_BEFORE_S = 20.0  # of steps before the capture window ends: warm-up, timing and sampling take less

SETUP = {
    "launch-bound": """
net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) for _ in range(24)))
net.to(device)
x = torch.randn(8, 16, device=device)
def batches():
    while True:
        yield x
""",
    "compute-bound": """
size = 4096 if device == "cuda" else 512
net = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.ReLU(), torch.nn.Linear(size, size))
net.to(device)
x = torch.randn(size, size, device=device)
def batches():
    while True:
        yield x
""",
    "loader-bound": """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20
    def __getitem__(self, index):
        total, index = 0, index & 255  # so that no step has larger numbers than another: those take longer
        for bit in range(2000):
            total += (index >> (bit & 7)) & 1
        return torch.full((16,), float(total))
net = torch.nn.Linear(16, 16).to(device)
def batches():
    for batch in torch.utils.data.DataLoader(Data(), batch_size=32):
        yield batch.to(device)
""",
}

SCRIPT = """
import json, os, sys, time, torch
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
{setup}
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
stamps = []
def train(steps):
    for at, batch in enumerate(batches()):
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        stamps.append((time.time_ns(), time.thread_time_ns()))
        if at == steps:
            break
try:
    {run}
finally:
    with open(os.environ["STAMPS"], "w") as file:
        json.dump(stamps, file)
"""

PROFILED = """
    from torch.profiler import ProfilerActivity, profile
    both = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
    with profile(activities=both, with_stack={stacks}, record_shapes=True, profile_memory=True):
        train(int(sys.argv[1]))
"""

WAYS = {
    "plain": "train(int(sys.argv[1]))",
    "warpline": "train(int(sys.argv[1]))",
    "torch.profiler": PROFILED.format(stacks=False),
    "with stacks": PROFILED.format(stacks=True),
    "settrace": """
    seen = {}
    def line(frame, event, argument):
        key = (frame.f_code.co_filename, frame.f_lineno)
        seen[key] = seen.get(key, 0) + 1
        return line
    sys.settrace(line)
    train(int(sys.argv[1]))
""",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--only", choices=tuple(SETUP), help="one script")
    parser.add_argument("--processor", action="store_true", help="processor time of the main thread")
    pinned.configure(parser)
    options = parser.parse_args()
    print("| script | plain step | " + " | ".join(COLUMNS) + " | capture / torch.profiler |")
    print("|---" * (len(COLUMNS) + 3) + "|", flush=True)
    names = [options.only] if options.only else list(SETUP)
    for row in pinned.side_by_side(partial(row_of, options=options), names, options):
        print(row, flush=True)
    return 0


def row_of(name: str, options: argparse.Namespace) -> str:
    rounds = [one_round(name, options) for _ in range(options.rounds)]
    plain = statistics.median(each["plain"] for each in rounds)
    cells = [ratios([each[column] / each["plain"] for each in rounds]) for column in COLUMNS]
    cells.append(ratios([each["capture window"] / each["torch.profiler"] for each in rounds]))
    return f"| {name} | {plain / 1e6:.2f} ms | " + " | ".join(cells) + " |"


def threads() -> dict[str, str]:
    """Of the script: a core is left for what samples it."""
    count = str(max(1, len(os.sched_getaffinity(0)) - 1))
    return {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count}


def ratios(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def one_round(name: str, options: argparse.Namespace) -> dict[str, float]:
    """A quick step in ns for each way, and for each window of ours."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for way, run in WAYS.items():
            script, stamps = folder / f"{way}.py", folder / f"{way}.json"
            script.write_text(SCRIPT.format(setup=SETUP[name], run=run), encoding="utf-8")
            if way == "warpline":
                steps = int(MOST_BEFORE_S * 1e9 / found["plain"]) + 4 * options.steps
                found |= ours(script, stamps, steps, options)
                continue
            command = [options.python, str(script), str(options.steps + WARMUP)]
            environment = os.environ | threads() | {"STAMPS": str(stamps)}
            subprocess.run(command, env=environment, check=True, capture_output=True)
            found[way] = quick(durations(stamps, options.processor)[WARMUP:])
    return found


def quick(steps: Sequence[int]) -> int:
    """The longest of the quickest tenth."""
    return sorted(steps)[len(steps) // 10]


def durations(stamps: Path, processor: bool) -> list[int]:
    times = json.loads(stamps.read_text(encoding="utf-8"))
    return [after[processor] - before[processor] for before, after in pairwise(times)]


def ours(script: Path, stamps: Path, steps: int, options: argparse.Namespace) -> dict[str, float]:
    request = Request(
        target=str(script),
        argv=(str(steps),),
        python=options.python,
        cwd=str(script.parent),
        environment={"STAMPS": str(stamps)} | threads(),
        steps=options.steps,
        whole_run=True,
    )
    run = capture(request, script.parent / "run", output=os.open(os.devnull, os.O_WRONLY))
    manifest = runs.manifest(run)
    passed = list(pairwise(json.loads(stamps.read_text(encoding="utf-8"))))
    clock = options.processor

    def within(begin_ns: int, end_ns: int, left_out: int = 0) -> list[int]:
        """The steps that lie between two moments."""
        steps = [(before, after) for before, after in passed if begin_ns <= before[0] and after[0] <= end_ns]
        return [after[clock] - before[clock] for before, after in steps[left_out:]]

    first = found_in([after[0] - before[0] for before, after in passed], manifest.timed_ns)
    timed = passed[first : first + len(manifest.timed_ns)]
    end = manifest.captured[-1][1] + manifest.paused_ns
    if passed[-3][0][0] < end:
        raise SystemExit(f"{script.parent}: the script ended with the capture; raise MOST_BEFORE_S")
    return {
        "timing window": quick(within(timed[0][0][0], timed[-1][1][0]) if clock else manifest.timed_ns),
        "capture window": quick(recorded(within(manifest.captured[0][0], end), manifest.paused_ns > 0)),
        "outside": quick(within(end, passed[-1][1][0], left_out=2)),
    }


def recorded(steps: Sequence[int], paused: bool) -> list[int]:
    """Those that were recorded: if the capture ``paused``, without the long steps in which it did, and the
    one after each, which it leaves out."""
    longest = PAUSE * statistics.median(steps) if paused else math.inf
    return [now for before, now in pairwise([0, *steps]) if max(before, now) < longest]


def found_in(steps: Sequence[int], part: Sequence[int]) -> int:
    """Where ``part`` begins in ``steps``, which were stamped a little later: where they differ least."""
    places = range(len(steps) - len(part) + 1)
    return min(
        places, key=lambda at: sum(abs(one - other) for one, other in zip(steps[at:], part, strict=False))
    )


if __name__ == "__main__":
    sys.exit(main())
