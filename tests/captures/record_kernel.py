"""Records what Nsight Compute says of one kernel: for tests of ``warpline kernel`` without a GPU.

    python tests/captures/record_kernel.py OUT [SCRIPT KERNEL]

Without SCRIPT and KERNEL: the Triton kernels of examples/transpose-kernel, slow and fixed. OUT gets for
each KERNEL.ncu-rep (the report), KERNEL.json.xz (what ``ncu_report`` answered to every question that
``trace/nsight.py`` asks, and all other metrics of the launch) and KERNEL.txt (figures by source line).
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

from warpline.capture import nsight, nsight_module, probe
from warpline.diagnosis.files import text_of
from warpline.model.problem import Problem
from warpline.model.run import Request
from warpline.trace.nsight import first_launch, inside, load
from warpline.view.kernel import kernel_table

ROOT = Path(__file__).resolve().parents[2]


def recorded(action: Any) -> dict[str, Any]:
    """All that an ``ncu_report.IAction`` knows, as plain data.

    ``metrics``: name to ``value``, ``unit`` and, where it is kept by instruction, ``by_address``.
    ``sources``: address to file and line. ``rules``: what Nsight Compute's own rules said.
    """
    metrics: dict[str, Any] = {}
    addresses: set[int] = set()
    for name in sorted(action.metric_names()):
        metric = action.metric_by_name(name)
        entry: dict[str, Any] = {"value": metric.value(), "unit": metric.unit()}
        if metric.num_instances() and metric.has_correlation_ids():
            places = metric.correlation_ids()
            keys = [places.value(at) for at in range(metric.num_instances())]
            entry["by_address"] = {str(key): metric.value(at) for at, key in enumerate(keys)}
            addresses |= {key for key in keys if isinstance(key, int)}
        metrics[name] = entry
    sources = {}
    for address in sorted(addresses):
        source = action.source_info(address)
        if source is not None:
            sources[str(address)] = [source.file_name(), source.line()]
    rules = action.rule_results_as_dicts() if hasattr(action, "rule_results_as_dicts") else None
    return {"name": action.name(), "metrics": metrics, "sources": sources, "rules": rules}


def record(script: Path, kernel: str, out: Path) -> None:
    ncu = probe.nsight_compute()
    if ncu is None:
        raise Problem("ncu is not installed")
    folder = nsight_module.find(ncu)
    print(f"{kernel}: ncu {ncu}, ncu_report in {folder or 'this interpreter'}", flush=True)
    request = Request(target=str(script), cwd=str(out), python=sys.executable)
    report = nsight.collect(request, kernel, out / f"{kernel}.ncu-rep", ncu)
    context = load(report, folder)
    action = first_launch(context, report)
    found = json.dumps(recorded(action), default=str, sort_keys=True).encode()
    (out / f"{kernel}.json.xz").write_bytes(lzma.compress(found))
    shown = kernel_table(inside(action).with_texts(text_of))
    rows = (f"{row.place}  {row.source}\n    {row.memory}\n    {row.stalls}\n" for row in shown.rows)
    (out / f"{kernel}.txt").write_text("\n".join([*shown.summary, "", *rows, *shown.advice]) + "\n")
    print((out / f"{kernel}.txt").read_text(), flush=True)


def main() -> int:
    out = Path(sys.argv[1]).absolute()
    out.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 3:
        record(Path(sys.argv[2]).absolute(), sys.argv[3], out)
        return 0
    for version in ("slow", "fixed"):
        script = ROOT / "examples/transpose-kernel" / f"{version}.py"
        (kernel,) = re.findall(r"@triton\.jit\s+def (\w+)", script.read_text())
        record(script, kernel, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
