"""The replay of recorded GPU runs, and predictions between them: no GPU is needed.

    python benchmarks/replay.py

First each recorded window as its events alone make it (no scale fitted), and the step as it was timed
after the calibration. Then, for examples of which the fixed script was recorded as well, what the
simulation of the slow one says of the same change.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from warpline import trace
from warpline.attribution import attribute, locate
from warpline.model.change import Change, LoaderWorkers, MatmulRate, OverlapCopies, Together
from warpline.simulate import Places, Simulation, calibrate
from warpline.simulate.replay import replay
from warpline.simulate.timeline import timeline_of

CAPTURES = ROOT / "tests/captures"
#: What the fixed script does, where a change can say it.
FIXED: dict[str, Change] = {
    "fp32-bert": MatmulRate("bf16", elementwise=True),
    "loader-without-workers": Together((LoaderWorkers(8), OverlapCopies())),
}


def main() -> int:
    print(
        "| run | window ms | replayed | error | step ms | replayed | error |\n|---|---|---|---|---|---|---|"
    )
    steps: dict[str, float] = {}
    expected: dict[str, float] = {}
    for packed in sorted(CAPTURES.glob("*.tar.xz")):
        name = packed.name.removesuffix(".tar.xz")
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            events = trace.read(Path(folder))
        steps[name] = fmean(events.manifest.timed_ns) / 1e6
        simulation = shown(name, events, steps[name])
        predicted = simulation.predict(FIXED[name]) if name in FIXED else None
        if predicted is not None:
            expected[name] = predicted.speedup
    print("\n| example | predicted | recorded | error |\n|---|---|---|---|")
    for name, speedup in expected.items():
        if f"{name}-fixed" in steps:
            recorded = steps[name] / steps[f"{name}-fixed"]
            print(f"| {name} | {speedup:.2f} | {recorded:.2f} | {error(speedup, recorded)} |")
    return 0


def shown(name: str, events: trace.Trace, step_ms: float) -> Simulation:
    """Print the row of one run; its simulation."""
    located = locate(events)
    lines = tuple(zip(located.table.file, located.table.line, strict=True))
    places = Places(located.placed.line, located.table.of_location, lines)
    line = calibrate.unblocked(timeline_of(events, places))
    window_ms = (events.window_ns[1] - events.window_ns[0]) / events.steps / 1e6
    raw_ms = replay(line, calibrate.delays(line)) / 1e6
    simulation = Simulation(events, places, attribute(events, located))
    cells = [name, f"{window_ms:.2f}", f"{raw_ms:.2f}", error(raw_ms, window_ms)]
    cells += [f"{step_ms:.2f}", f"{simulation.replayed_ms:.2f}", error(simulation.replayed_ms, step_ms)]
    print(f"| {' | '.join(cells)} |", flush=True)
    return simulation


def error(found: float, truth: float) -> str:
    return f"{100 * (found / truth - 1):+.1f} %"


if __name__ == "__main__":
    sys.exit(main())
