"""Imports public sample traces and prints their kernel totals beside those that other tools report.

    python benchmarks/sample_traces.py FOLDER [--peers PYTHON]

tests/trace/test_samples.py says where the traces are from. Exports of Nsight Systems (``.sqlite``) are
compared with SQL over the file. ``PYTHON`` is an interpreter with
``HolisticTraceAnalysis`` and ``torch-tb-profiler`` (each installed with --no-deps, and with ``pandas<3``,
plotly, networkx, pydot, tqdm, pyyaml, psutil, tensorboard). HTA rounds the start of a kernel up to whole
microseconds and its end down; rounded so, the sums of a newer trace are equal. The plugin counts kernels
without copies, and reads only traces of kernels.
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
sys.path.insert(0, str(ROOT / "server"))

from warpline import pipeline, trace
from warpline.model.problem import Problem

#: What runs on the device, as traces of today and as those before torch 1.12 call it.
KERNELS, COPIES = {"kernel"}, {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
#: In the folder with the traces, and none: an execution trace of PyTorch, which has no times.
NO_TRACES = {"benchmark_simple_add_et.json.gz"}
#: What runs on the device, in an export of Nsight Systems; kernels first.
_EXPORTED = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_PEERS = Path(__file__).with_name("sample_traces_peers.py")


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


def _said(total: Totals | None) -> str:
    return "-" if total is None else f"{total.count} / {total.ms:.3f}"


def main(folder: Path, peers: str | None) -> None:
    others: dict[str, Any] = {}
    if peers:
        done = subprocess.run(
            [peers, str(_PEERS), str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        others = json.loads(done.stdout.splitlines()[-1])
    print("kernels and copies / milliseconds on the device; the plugin: kernels without copies")
    print("| trace | import | Warpline | the file | HTA | kernels only | TensorBoard plugin |")
    print("|---|---|---|---|---|---|---|")
    for path in (*trace_files(folder), *sorted(folder.rglob("*.sqlite"))):
        with tempfile.TemporaryDirectory() as place:
            since = time.monotonic()
            found = ours(path, Path(place))
            took = time.monotonic() - since
        name = str(path.relative_to(folder))
        if found is None:
            print(f"| {name} | refused: no trace | | | | | |")
            continue
        if path.suffix == ".sqlite":
            plain, kernels = _sum(in_export(path)), _sum(in_export(path, _EXPORTED[:1]))
        else:
            plain, kernels = _sum(in_json(path)), _sum(in_json(path, frozenset(KERNELS)))
        known = {each: Totals(*said) for each, said in others.get(name, {}).items()}
        columns = (_sum(found), plain, known.get("hta"), kernels, known.get("plugin"))
        print(f"| {name} | {took:.1f} s | {' | '.join(map(_said, columns))} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", metavar="PYTHON")
    given = parser.parse_args()
    main(given.folder, given.peers)
