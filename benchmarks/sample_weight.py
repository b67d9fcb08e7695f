"""How far to believe the trace where lines were sampled: ``OFF`` of ``attribution/sampled.py``.

    python benchmarks/sample_weight.py RUN...

RUN are run folders of scripts on a CPU (``warpline profile --run-dir``). Some samples of each run are drawn.
With each value of ``OFF`` the shares of the lines are estimated from the trace and the drawn samples, and
scored by the samples that were held back: their mean log likelihood (higher is better), and how far off the
lines of 5 % and more are, in percent of the step (with the chance error of the samples that were held back).
No stopwatch is needed. The machine may be busy: both halves were taken in the same steps.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline import attribution, trace
from warpline.attribution import accounting, sampled
from warpline.attribution.table import LineTable
from warpline.trace.columns import Floats
from warpline.wire.samples import Samples

WEIGHTS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
DRAWN = (200, 500, 1000)
MOST = 0.8  # of the samples are drawn
ROUNDS = 6
LEAST_SHARE = 0.05
FLOOR = 1e-5  # of the step, for each line: a sample where nothing was expected is unlikely, not impossible

Seen = tuple[Samples, LineTable, Floats]


def seen_in(run: Path) -> Seen:
    """What the estimate is made from: samples, lines, and the trace's time of each line."""
    found: list[Seen] = []

    def factors(samples: Samples, table: LineTable, seen: Floats) -> Floats:
        found.append((samples, table, seen.copy()))
        return np.ones(len(seen))

    with mock.patch.object(accounting, "factors", factors):
        attribution.attribute(trace.read(run))
    return found[0]


def counted(samples: Samples, table: LineTable) -> Floats:
    number = {place: at for at, place in enumerate(zip(table.file, table.line, strict=True))}
    count = np.zeros(len(table))
    for file, line, times in samples.lines:
        count[number.get((file, line), 0)] += times
    count[0] += samples.total - count.sum()
    return count


def estimated(drawn: Floats, table: LineTable, seen: Floats, weight: float) -> Floats:
    lines = zip(table.file, table.line, drawn.astype(int).tolist(), strict=True)
    samples = Samples(int(drawn.sum()), tuple(lines))
    with mock.patch.multiple(sampled, OFF=weight, FEWEST=0):
        share = seen * sampled.factors(samples, table, seen)
    floored: Floats = (share / share.sum() + FLOOR) / (1 + FLOOR * len(share))
    return floored


def main() -> int:
    runs = [seen_in(Path(name)) for name in sys.argv[1:]]
    runs = [run for run in runs if run[0].total >= sampled.FEWEST]
    chance = np.random.default_rng(0)
    print(f"{len(runs)} runs\n\n| samples drawn | OFF | log likelihood | large lines off, mean | 95 % |")
    print("|--:|--:|--:|--:|--:|")
    for wanted in DRAWN:
        likely, off, held = dict.fromkeys(WEIGHTS, 0.0), {weight: [] for weight in WEIGHTS}, 0.0
        for samples, table, seen in runs:
            count = counted(samples, table)
            large = count >= LEAST_SHARE * count.sum()
            for _ in range(ROUNDS):
                drawn = chance.binomial(count.astype(int), min(MOST, wanted / count.sum())).astype(float)
                rest = count - drawn
                held += rest.sum()
                for weight in WEIGHTS:
                    share = estimated(drawn, table, seen, weight)
                    likely[weight] += float((rest * np.log(share)).sum())
                    off[weight] += abs(share - rest / rest.sum())[large].tolist()
        for weight in WEIGHTS:
            mean, most = 100 * np.mean(off[weight]), 100 * np.quantile(off[weight], 0.95)
            print(f"| {wanted} | {weight} | {likely[weight] / held:.4f} | {mean:.2f} % | {most:.2f} % |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
