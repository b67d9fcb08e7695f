"""How long do all rules take on a run? Goal: at most 0.5 s for 75,000 events.

    python benchmarks/rule_time.py [RUN ...] [--rounds 3]

RUN is a run folder. Without one, a training loop with a Transformer is captured on the CPU, with as many
steps as give 75,000 trace events. Each round parses the sources anew, as a report does; the predictions of
the findings are not part of it. Shown are the median of the rounds and the slowest rules.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline import pipeline, runs
from warpline.model.profile import Profile
from warpline.rulekit import Context
from warpline.rules import rules
from warpline.syntax.source import parsed
from warpline.trace import decode
from warpline.wire.run import Request

GOAL_S = 0.5
EVENTS = 75_000
SHOWN = 6
EVENTS_A_STEP = 23_600  # of the loop below, on a CPU

#: Attention, a norm and a loss written by hand, so that the rules about formulas have something to look at.
LOOP = """
import torch
from torch import nn
import torch.nn.functional as F

class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(var + 1e-5) * self.w + self.b

class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.n, self.m = h, Norm(d), Norm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) for y in self.qkv(self.n(x)).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / (d // self.h) ** 0.5
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
        u = self.up(self.m(x))
        return x + self.down(0.5 * u * (1 + torch.erf(u / 2 ** 0.5)))

torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(128, 64), *[Block(64, 4) for _ in range(12)], nn.Linear(64, 128))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=False)
while True:
    ids = torch.randint(0, 128, (4, 33))
    logits = net(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        missed = False
        for run in options.runs or [captured(Path(folder))]:
            profile = pipeline.profile_of(run)
            events = events_of(run)
            rounds = [seconds(profile) for _ in range(options.rounds)]
            total = statistics.median(sum(one.values()) for one in rounds)
            middle = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
            slowest = sorted(middle, key=lambda name: -middle[name])[:SHOWN]
            print(f"{run.name}: {events:,} events, all rules {total:.3f} s")
            print("  " + ", ".join(f"{name} {1e3 * middle[name]:.0f} ms" for name in slowest), flush=True)
            missed |= total > GOAL_S
    return 1 if missed else 0


def events_of(run: Path) -> int:
    counts: list[int] = []
    decode.decode(runs.part(run, runs.TRACE), lambda piece: counts.append(len(piece)))
    return sum(counts)


def captured(folder: Path) -> Path:
    script = folder / "loop.py"
    script.write_text(LOOP, encoding="utf-8")
    steps = round(EVENTS / EVENTS_A_STEP)
    request = Request(target=str(script), python=sys.executable, cwd=str(folder), steps=steps, warmup=3)
    return pipeline.profile(request, folder=folder)[0]


def seconds(profile: Profile) -> dict[str, float]:
    """Seconds of each rule on a profile that nothing was kept of."""
    parsed.cache_clear()
    facts = profile.facts
    fresh = replace(
        profile, facts=replace(facts, dataflow=replace(facts.dataflow))
    )  # a graph is kept by record
    context = Context(fresh, fresh.sources.get)
    found = {}
    for rule in rules():
        if not all(map(context.can, rule.needs)):
            continue
        begin = time.perf_counter()
        list(rule.find(context))
        found[rule.name] = time.perf_counter() - begin
    return found


if __name__ == "__main__":
    sys.exit(main())
