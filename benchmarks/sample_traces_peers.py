"""Kernel totals of the traces below a folder as HTA and the TensorBoard plugin have them, as JSON.

Called by sample_traces.py in an environment that has them. What one of them cannot read is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")


def hta(path: Path) -> tuple[int, float]:
    from hta.common.trace import Trace

    read = Trace(trace_files={0: str(path)}, trace_dir=str(path.parent))
    read.parse_traces(use_multiprocessing=False)
    events, names = read.get_trace(0), read.symbol_table.sym_table
    events = events[events["cat"].map(lambda number: names[number].lower() in DEVICE)]
    return len(events), float(events["dur"].sum()) / 1000


def plugin(path: Path) -> tuple[int, float]:
    from torch_tb_profiler.io import Cache
    from torch_tb_profiler.profiler.data import RunProfileData

    read = RunProfileData.parse("worker", None, str(path), Cache())
    read.process()
    kernels = read.kernel_stat
    return int(kernels["count"].sum()), float(kernels["sum"].sum()) / 1000


def main(folder: Path) -> None:
    tools: dict[str, Callable[[Path], tuple[int, float]]] = {"hta": hta, "plugin": plugin}
    found: dict[str, dict[str, tuple[int, float]]] = {}
    for path in sorted(folder.rglob("*.json*")):
        for name, read in tools.items():
            try:
                found.setdefault(str(path.relative_to(folder)), {})[name] = read(path)
            except Exception as error:  # noqa: BLE001 - of any kind: they were written for traces of their time
                print(f"{name}: {path.name}: {error!r}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
