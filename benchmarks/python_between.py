"""How much of the host's time between a network's operators is Python, which compiled code leaves out.

    python benchmarks/python_between.py --out benchmarks/figures/NAME.json

A profile splits the host's time in a forward pass into operators and what is between them. The recorder and
the profiler lengthen both, and what calls an operator counts as between. So each network is also timed
without Warpline, as it is and as TorchScript runs its operators without optimizing them, in turn: what the
second one saves is Python. The figure is that share of the pass, divided by the share that the profile has
between the operators. Needs a GPU, where these small networks wait for the host. ``fit.py`` puts range and
number of samples into ``costs.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

import torch

from warpline import judging, pipeline, trace
from warpline.attribution import locate
from warpline.simulate.simulation import Simulation
from warpline.simulate.timeline import LOADER

NETWORKS = Path(__file__).resolve().parent / "networks_of_modules.py"
FIGURE = "python-between"
#: Calls in a reading, readings, and calls before them. Chosen: half a second for a pass of 4 ms.
CALLS, ROUNDS, WARM = 10, 12, 15
TRAINING = """
import sys
import torch
from networks_of_modules import made
network, inputs = made(sys.argv[1])
optimizer = torch.optim.SGD(network.parameters(), 0.001)
while True:
    loss = network(inputs).float().pow(2).mean()  # the forward pass
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FORWARD = 1 + next(at for at, line in enumerate(TRAINING.lstrip().split("\n")) if "forward pass" in line)


def seconds_a_call(work: Callable[[], object]) -> float:
    """Seconds that each of ``CALLS`` calls takes, one after the other."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(CALLS):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / CALLS


def saved_without_python(name: str) -> float:
    """The share of a forward pass that is Python, by the clock."""
    from networks_of_modules import made

    network, inputs = made(name)
    with torch.jit.optimized_execution(False):
        flat = torch.jit.trace(network, inputs, check_trace=False)
        works = (lambda: network(inputs), lambda: flat(inputs))
        for work in works:
            for _ in range(WARM):
                work()
        rounds = [[seconds_a_call(work) for work in works] for _ in range(ROUNDS)]
    modules, alone = (median(times) for times in zip(*rounds, strict=True))
    return 1 - alone / modules


def between_operators(run: Path) -> float:
    """The share of the forward pass's host time that a profile has between operators."""
    profile = pipeline.profile_of(run)
    events = trace.read(run)
    places = judging.places(locate(events))
    line = Simulation(events, places, profile)._timeline
    numbers = [
        at
        for at, (file, number) in enumerate(places.lines)
        if file.endswith(NETWORKS.name) or (file.endswith("main.py") and number == FORWARD)
    ]
    here = [
        (float(spent), int(op))
        for spent, op, place, kind, backward in zip(
            line.host_ns, line.op, line.place, line.kind, line.backward, strict=True
        )
        if place in numbers and kind != LOADER and not backward
    ]
    return sum(spent for spent, op in here if op < 0) / sum(spent for spent, _ in here)


def profiled(name: str, folder: Path) -> Path:
    """The folder of the run of a training loop."""
    (folder / "main.py").write_text(TRAINING.lstrip(), encoding="utf-8")
    (folder / NETWORKS.name).write_text(NETWORKS.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "warpline", "profile", "--probe", "0", "main.py", name]
    subprocess.run(command, cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL)
    return max((folder / ".warpline/runs").iterdir())


def main() -> None:
    from networks_of_modules import NAMES

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found: dict[str, float] = {}
    for name in NAMES:
        saved = saved_without_python(name)
        with tempfile.TemporaryDirectory() as folder:
            found[name] = float(f"{saved / between_operators(profiled(name, Path(folder))):.3g}")
        print(name, found[name], flush=True)
        kept = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "figures": {FIGURE: found},
        }
        options.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
