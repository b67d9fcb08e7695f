"""Imports traces and compares their totals by kernel with those that other tools report.

    python benchmarks/sample_traces.py [PATH…] [--peers PYTHON]

PATH: a trace, or a folder of them; else the public ones of ``make samples``. Exports of Nsight Systems
(``.sqlite``) are compared with SQL over the file. ``PYTHON`` is an interpreter with ``HolisticTraceAnalysis``
and ``torch-tb-profiler``, as ``make bench`` makes one. HTA rounds the start of a kernel up to whole
microseconds and its end down; rounded so, the times of a newer trace are equal. The plugin counts kernels
without copies, and reads only traces of kernels. Exits with 1 if any total differs.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "server"), str(ROOT)]

from tests.trace.samples import FOLDER, MISSING
from warpline import pipeline, trace
from warpline.model.problem import Problem
from warpline.trace.contradictions import LONGEST_NAME

#: What runs on the device, as traces of today and as those before torch 1.12 call it.
KERNELS, COPIES = {"kernel"}, {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
#: In the folder with the traces, and none: an execution trace of PyTorch, which has no times.
NO_TRACES = {"benchmark_simple_add_et.json.gz"}
#: What runs on the device, in an export of Nsight Systems; kernels first.
_EXPORTED = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_PEERS = Path(__file__).with_name("sample_traces_peers.py")
PEERS_LIMIT_S = 1200.0  # for all traces; two cores need two minutes
EXACT_MS, ROUNDED_MS = (
    1e-5,
    2e-3,
)  # by which the time of one kernel may differ; where it was rounded, as by HTA


@dataclass
class Totals:
    count: int = 0
    ms: float = 0.0

    def add(self, ms: float) -> None:
        self.count += 1
        self.ms += ms


def trace_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name.endswith((".json", ".json.gz")))


def in_export(path: Path, tables: Sequence[str] = _EXPORTED) -> dict[str, Totals]:
    """By table of an nsys export, by SQL; tables that it does not have are left out."""
    found = {}
    with contextlib.closing(sqlite3.connect(path)) as export:
        known = {name for (name,) in export.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in known.intersection(tables):
            count, ns = export.execute(f"SELECT COUNT(*), SUM(end - start) FROM {table}").fetchone()
            found[table] = Totals(count, (ns or 0) / 1e6)
    return found


def shortened(found: dict[str, Totals]) -> dict[str, Totals]:
    """Names as the import shortens them. Raises ValueError if two are the same then."""
    made = {
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…": one
        for name, one in found.items()
    }
    if len(made) < len(found):
        raise ValueError("two names are the same once they are shortened")
    return made


def in_json(path: Path, categories: frozenset[str] = frozenset(KERNELS | COPIES)) -> dict[str, Totals]:
    """By kernel name, from the file's text alone; nothing of ours is used."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    read: Any = json.loads(data.decode(errors="replace"), strict=False)
    found: defaultdict[str, Totals] = defaultdict(Totals)
    for event in read if isinstance(read, list) else read.get("traceEvents", []):
        if event.get("ph") == "X" and str(event.get("cat", "")).lower() in categories:
            found[event["name"]].add(event["dur"] / 1000)
    return dict(found)


def ours(path: Path, folder: Path) -> dict[str, Totals] | None:
    """By kernel name, from the run that ``warpline import`` makes in ``folder``; None where it refuses."""
    try:
        ((run, _),) = pipeline.import_trace(path, folder=folder)
    except Problem:
        return None
    events = trace.read(run)
    kernels, found = events.kernels, defaultdict[str, Totals](Totals)
    lengths = (kernels.end_ns - kernels.start_ns) / 1e6
    for name, length in zip(np.array(events.names, object)[kernels.name], lengths.tolist(), strict=True):
        found[name].add(length)
    return dict(found)


def _sum(found: dict[str, Totals]) -> Totals:
    return Totals(sum(each.count for each in found.values()), sum(each.ms for each in found.values()))


def differ(one: dict[str, Totals], other: dict[str, Totals], each_ms: float = EXACT_MS) -> list[str]:
    """Names of kernels whose totals differ: in their number, or by more than ``each_ms`` for each."""
    nothing = Totals()
    pairs = {name: (one.get(name, nothing), other.get(name, nothing)) for name in {*one, *other}}
    return [
        name
        for name, (a, b) in pairs.items()
        if a.count != b.count or abs(a.ms - b.ms) > each_ms * max(1, a.count)
    ]


def _said(total: Totals | None) -> str:
    return "-" if total is None else f"{total.count} / {total.ms:.3f}"


def by_peers(files: Sequence[Path], peers: str) -> dict[Path, dict[str, dict[str, Totals]]]:
    """What the other tools say of each trace, by kernel; without the tools that cannot read it."""
    command = [peers, str(_PEERS), *map(str, files)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=PEERS_LIMIT_S
    )
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b'{"path"')]
    return {
        Path(one.pop("path")): {
            tool: {name: Totals(*total) for name, total in kernels.items()} for tool, kernels in one.items()
        }
        for one in said
    }


def row(path: Path, name: str, others: dict[str, dict[str, Totals]]) -> tuple[str, bool]:
    """A line of the table, and whether all totals in it agree."""
    with tempfile.TemporaryDirectory() as place:
        since = time.monotonic()
        found = ours(path, Path(place))
        took = time.monotonic() - since
    if found is None:
        return f"| {name} | refused: no trace | | | | | |", path.name in NO_TRACES
    if path.suffix == ".sqlite":
        plain, kernels = _sum(in_export(path)), _sum(in_export(path, _EXPORTED[:1]))
        return f"| {name} | {took:.1f} s | {_said(_sum(found))} | {_said(plain)} | | {_said(kernels)} | |", (
            _sum(found).count == plain.count
        )
    file, kernels_alone = in_json(path), in_json(path, frozenset(KERNELS))
    wrong = differ(found, shortened(file))
    if "hta" in others:
        wrong += differ(file, others["hta"], ROUNDED_MS)
    if "plugin" in others:
        wrong += differ(kernels_alone, others["plugin"], EXACT_MS)
    for one in wrong[:3]:
        print(f"{name}: totals differ: {one[:100]}", file=sys.stderr)
    columns = [found, file, others.get("hta"), kernels_alone, others.get("plugin")]
    said = " | ".join(_said(None if each is None else _sum(each)) for each in columns)
    return f"| {name} | {took:.1f} s | {said} |", not wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--peers", metavar="PYTHON")
    options = parser.parse_args()
    status = 0
    print("kernels and copies / milliseconds on the device; the plugin: kernels without copies")
    print("| trace | import | Warpline | the file | HTA | kernels only | TensorBoard plugin |")
    print("|---|---|---|---|---|---|---|")
    for given in options.paths or [FOLDER]:
        files = [given] if given.is_file() else [*trace_files(given), *sorted(given.rglob("*.sqlite"))]
        if not files:
            print(MISSING if given == FOLDER else f"{given}: no traces", file=sys.stderr)
            status = 1
        said_by = by_peers(files, options.peers) if options.peers else {}
        if options.peers and not all(
            any(tool in said for said in said_by.values()) for tool in ("hta", "plugin")
        ):
            print(f"{given}: not both of the other tools could read a trace", file=sys.stderr)
            status = 1
        for path in files:
            name = path.name if path == given else str(path.relative_to(given))
            said, agrees = row(path, name, said_by.get(path, {}))
            status |= not agrees
            print(said, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
