"""Claims in the scripts, and how they are held against the placed ops of a run."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpline.attribution import locate
from warpline.attribution.place import BACKWARD, FORWARD, RECOMPUTE
from warpline.trace import read
from warpline.trace.columns import OP

CLAIM = re.compile(r"#> (.*)$")
PHASES = {"again:": RECOMPUTE, "in:": BACKWARD}


@dataclass(frozen=True)
class Claim:
    """All ops of this name in this phase lie on this line, with everything that they call."""

    op: str
    phase: int
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.op} at {Path(self.file).parent.name}/{Path(self.file).name}:{self.line}"


def claims(folder: Path) -> list[Claim]:
    found = []
    for path in sorted(folder.rglob("*.py")):
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := CLAIM.search(text):
                found += [_claim(word, path, number) for word in match[1].split()]
    return found


def _claim(word: str, path: Path, number: int) -> Claim:
    phase = FORWARD
    for prefix, of_prefix in PHASES.items():
        if word.startswith(prefix):
            word, phase = word.removeprefix(prefix), of_prefix
    is_node = re.search(r"Backward\d$", word)
    if not is_node and "::" not in word:
        word = f"aten::{word}"
    return Claim(word, BACKWARD if is_node else phase, str(path), number)


@dataclass(frozen=True)
class Verdict:
    """For each claim the number of ops that it speaks of, and where those lie that lie elsewhere."""

    met: dict[Claim, int]
    missed: dict[Claim, list[str]]


def verdict(run: Path, folder: Path) -> Verdict:
    trace = read(run)
    located = locate(trace)
    table, placed, host = located.table, located.placed, trace.host
    captured = (host.start_ns >= trace.window_ns[0]) & (host.start_ns < trace.window_ns[1])
    met: dict[Claim, int] = defaultdict(int)
    missed: dict[Claim, list[str]] = defaultdict(list)
    names = {name: at for at, name in enumerate(trace.names)}
    for claim in claims(folder):
        met[claim] = 0
        wanted = [names.get(claim.op, -1), names.get(f"autograd::engine::evaluate_function: {claim.op}", -1)]
        rows = np.flatnonzero(
            np.isin(host.name, wanted) & (host.kind == OP) & captured & (placed.phase == claim.phase)
        )
        for row in rows.tolist():
            below = [op for op in _called_by(host, row) if placed.record[op] == placed.record[row]]
            for op in [row, *below]:  # (where a line was recorded since, Python ran inside: a hook)
                met[claim] += 1
                line = placed.line[op]
                if (table.file[line], table.line[line]) != (claim.file, claim.line):
                    missed[claim].append(
                        f"{trace.names[host.name[op]]} at {table.file[line]}:{table.line[line]}"
                    )
    return Verdict(dict(met), dict(missed))


def _called_by(host, row: int) -> list[int]:  # type: ignore[no-untyped-def]
    """Ops below ``row`` on its thread: those that begin before it ends and stand deeper."""
    end = row + 1
    while end < len(host) and host.thread[end] == host.thread[row] and host.depth[end] > host.depth[row]:
        end += 1
    return list(range(row + 1, end))
