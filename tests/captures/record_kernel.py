"""Records what Nsight Compute says of a kernel, for tests of ``warpline kernel`` without a GPU.

    python tests/captures/record_kernel.py OUT [REPORT.ncu-rep...]

Without reports: the Triton kernels of examples/transpose-kernel, slow and fixed, are run under ``ncu`` first,
and OUT gets KERNEL.ncu-rep as well. With reports no GPU is needed, only ``ncu_report`` (NVIDIA's ncu-report
on PyPI). OUT gets KERNEL.ncu.json.xz: what ``ncu_report`` answers to all that ``trace/nsight.py`` asks.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

from warpline.capture import nsight, nsight_module, probe
from warpline.model.problem import Problem
from warpline.trace.nsight import first_launch, load
from warpline.wire.run import Request

ROOT = Path(__file__).resolve().parents[2]
#: Other metrics are not asked for, and thousands.
ASKED = re.compile(
    r"memory_l2_theoretical_sectors_global(_ideal)?|smsp__pcsamp_warps_issue_stalled_\w+|gpu__time_duration\.sum"
    r"|(sm__throughput|gpu__compute_memory_throughput)\.avg\.pct_of_peak_sustained_elapsed"
    r"|sm__warps_active\.avg\.pct_of_peak_sustained_active|device__attribute_display_name"
)


def recorded(action: Any) -> dict[str, Any]:
    """What an ``ncu_report.IAction`` says, as plain data.

    ``metrics``: name to ``value`` and, where it is kept by instruction, ``by_address``. ``sources``: address
    to file and line. ``rules``: what Nsight Compute's own rules said.
    """
    metrics: dict[str, Any] = {}
    sources: dict[str, Any] = {}
    for name in sorted(filter(ASKED.fullmatch, action.metric_names())):
        metric = action.metric_by_name(name)
        text = name == "device__attribute_display_name"
        metrics[name] = {"value": metric.as_string() if text else metric.as_double()}
        if metric.has_correlation_ids():
            addresses = metric.correlation_ids()
            keys = [addresses.as_uint64(at) for at in range(metric.num_instances())]
            metrics[name]["by_address"] = {str(key): metric.as_double(at) for at, key in enumerate(keys)}
            for key in keys:
                source = action.source_info(key)
                if source is not None:
                    sources[str(key)] = [source.file_name(), source.line()]
    rules = action.rule_results_as_dicts()
    return {"name": action.name(), "metrics": metrics, "sources": sources, "rules": rules}


def collected(out: Path) -> list[Path]:
    """Reports of the example's kernels, from this machine's GPU. Raises Problem."""
    ncu = probe.nsight_compute()
    if ncu is None:
        raise Problem("ncu is not installed")
    reports = []
    for version in ("slow", "fixed"):
        script = ROOT / "examples/transpose-kernel" / f"{version}.py"
        (kernel,) = re.findall(r"@triton\.jit\s+def (\w+)", script.read_text())
        request = Request(target=str(script), cwd=str(out), python=sys.executable)
        reports.append(nsight.collect(request, kernel, out / f"{kernel}.ncu-rep", ncu))
        print(reports[-1], flush=True)
    return reports


def main() -> int:
    out = Path(sys.argv[1]).absolute()
    out.mkdir(parents=True, exist_ok=True)
    ncu = probe.nsight_compute()
    folder = nsight_module.find(ncu) if ncu is not None else None
    for report in map(Path, sys.argv[2:]) if sys.argv[2:] else collected(out):
        context = load(report, folder)
        answers = recorded(first_launch(context, report))
        packed = lzma.compress(json.dumps(answers, sort_keys=True).encode(), preset=9)
        path = out / f"{report.stem}.ncu.json.xz"
        path.write_bytes(packed)
        print(f"{path}: {len(packed)} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
