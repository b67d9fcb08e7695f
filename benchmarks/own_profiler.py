"""How often a script with its own torch.profiler gives a report, its traces intact. On the CPU, in minutes.

    python benchmarks/own_profiler.py [TIMES]

The script is what PyTorch's tutorial on the profiler leads to. Each run counts if it ends with status 0,
prints nothing of ours, and leaves the traces that the script makes alone: the same steps, kinds of events
and numbers of operators, each file JSON that parses.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

#: ``{schedule}`` and ``{steps}`` are filled in.
SCRIPT = """\
import torch
from torch import nn
from torch.profiler import profile, schedule, tensorboard_trace_handler
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
data = torch.utils.data.TensorDataset(torch.randn(4000, 64), torch.randint(0, 10, (4000,)))
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
with profile({schedule}) as prof:
    for step, (inputs, labels) in enumerate(loader):
        if step >= {steps}:
            break
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        prof.step()
{after}
"""
CYCLES = (
    "schedule=schedule(wait=1, warmup=1, active=3{repeat}), "
    "on_trace_ready=tensorboard_trace_handler('log'), with_stack=True"
)
#: Without stacks: torch 2.13 alone fails on most such scripts that have them, with a UnicodeDecodeError.
EXPORT = "print(prof.key_averages().table(row_limit=3))\nprof.export_chrome_trace('trace.json')"


def scripts() -> dict[str, str]:
    """The variants, by what they are."""
    made = {}
    for steps in (5, 8, 12, 20):
        schedule = CYCLES.format(repeat="")
        made[f"cycles of 5, {steps} steps"] = SCRIPT.format(schedule=schedule, steps=steps, after="")
    twice = CYCLES.format(repeat=", repeat=2")
    made["two cycles, 20 steps"] = SCRIPT.format(schedule=twice, steps=20, after="")
    made["around all, 20 steps"] = SCRIPT.format(schedule="", steps=20, after=EXPORT)
    return made


def traces(folder: Path) -> list[dict[str, Any]]:
    """What there is in each trace below ``folder``, in the order of their steps. ValueError: no JSON."""
    found = []
    for path in (
        *folder.rglob("*.pt.trace.json"),
        *folder.rglob("*.pt.trace.json.gz"),
        folder / "trace.json",
    ):
        if not path.exists():
            continue
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        events = json.loads(text)["traceEvents"]
        names = Counter(str(event.get("name")) for event in events if event.get("ph") == "X")
        found.append({
            "steps": sorted(name for name in names if name.startswith("ProfilerStep")),
            "kinds": sorted({str(event.get("cat")) for event in events}),
            "operators": {name: names[name] for name in ("aten::addmm", "Optimizer.step#SGD.step")},
        })  # fmt: skip
    return sorted(found, key=str)


def run(script: Path, *before: str) -> tuple[int, str]:
    """Exit status and all output of the script in its folder; ``before``: of the command line."""
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *before, script.name],
        cwd=script.parent,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def wrong(text: str, times: int) -> list[str]:
    """What was wrong with each of ``times`` runs that were not right."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        alone = Path(name, "train.py")
        alone.write_text(text)
        run(alone)
        expected = traces(alone.parent)
    for _ in range(times):
        with tempfile.TemporaryDirectory() as name:
            script = Path(name, "train.py")
            script.write_text(text)
            status, output = run(script, "-m", "warpline", "profile")
            if status:
                found.append(f"status {status}: {output.strip().splitlines()[-1]}")
            elif "Traceback" in output or "warpline/capture" in output:
                found.append("ours in the output")
            elif traces(script.parent) != expected:
                found.append("other traces")
    return found


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, text in scripts().items():
        found = wrong(text, times)
        print(f"{name}: {times - len(found)} of {times}", *Counter(found).items(), flush=True)


if __name__ == "__main__":
    main()
