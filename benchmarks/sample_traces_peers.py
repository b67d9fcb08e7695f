"""Totals by kernel of traces as HTA and the TensorBoard plugin have them: a line of JSON for each.

Called by sample_traces.py in an environment that has them. What one of them cannot read is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
Totals = dict[str, tuple[int, float]]  # by name: count, milliseconds


def hta(path: Path) -> Totals:
    from hta.common.trace import Trace

    read = Trace(trace_files={0: str(path)}, trace_dir=str(path.parent))
    read.parse_traces(use_multiprocessing=False)
    events, names = read.get_trace(0), read.symbol_table.sym_table
    events = events[events["cat"].map(lambda number: names[number].lower() in DEVICE)]
    found = events.groupby("name")["dur"].agg(["count", "sum"])
    return {names[name]: (int(one["count"]), float(one["sum"]) / 1000) for name, one in found.iterrows()}


def plugin(path: Path) -> Totals:
    from torch_tb_profiler.io import Cache
    from torch_tb_profiler.profiler.data import RunProfileData

    read = RunProfileData.parse("worker", None, str(path), Cache())
    read.process()
    found = read.kernel_stat
    return {name: (int(one["count"]), float(one["sum"]) / 1000) for name, one in found.iterrows()}


def totals(path: Path) -> dict[str, Totals]:
    tools: dict[str, Callable[[Path], Totals]] = {"hta": hta, "plugin": plugin}
    found: dict[str, Totals] = {}
    for name, read in tools.items():
        try:
            found[name] = read(path)
        except Exception as error:  # noqa: BLE001 - of any kind: they were written for traces of their time
            print(f"{name}: {path.name}: {error!r}", file=sys.stderr)
    return found


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(json.dumps({"path": each, **totals(Path(each))}))
