"""An Nsight Compute report -> :class:`warpline.model.kernel.KernelInside`, through NVIDIA's ``ncu_report``.

``capture.nsight_module`` finds that module. The metric names are Nsight Compute's.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from warpline.model.kernel import KernelInside, KernelLine
from warpline.model.problem import Problem

_SECTORS = "memory_l2_theoretical_sectors_global"
_IDEAL = "memory_l2_theoretical_sectors_global_ideal"
_STALL = "smsp__pcsamp_warps_issue_stalled_"
_NOT_ISSUED = "_not_issued"  # suffix: the same samples, only for cycles in which the scheduler issued nothing

#: Samples in which a warp issued an instruction and was not stalled.
_ISSUING = "selected"
#: ``MsgType`` of messages without advice, and ``SpeedupType`` of estimates for the whole kernel.
_NONE, _OK, _WHOLE_KERNEL = 0, 1, 2
_LINK = re.compile(
    r"@url:(?P<linked>[^@]*?):\w+://[^@]*@|@(?:section:[^:@]*|sass:[^:@]*|source:[^@]*?:\d+):(?P<text>[^@]*)@"
)

FileLine = tuple[str, int]


def read(report: Path, folder: Path | None) -> KernelInside:
    """The first kernel of ``report``. Raises Problem if the report cannot be read or has no kernel.

    ``folder``: where ``ncu_report`` is imported from; None: this interpreter's own packages.
    """
    context = load(report, folder)  # keep a reference: its contents are freed with it
    return inside(first_launch(context, report))


def load(report: Path, folder: Path | None) -> Any:
    """``report`` as an ``ncu_report.IContext``. Raises Problem when it cannot be read."""
    try:
        return _module(folder).load_report(str(report))
    except (RuntimeError, OSError) as error:
        raise Problem(f"{report} cannot be read: {error}") from None


def first_launch(context: Any, report: Path) -> Any:
    """The first ``ncu_report.IAction`` in it. Raises Problem when there is none."""
    for group in range(context.num_ranges()):
        actions = context.range_by_idx(group)
        if actions.num_actions():
            return actions.action_by_idx(0)
    raise Problem(f"{report} contains no kernel", 1)


def inside(action: Any) -> KernelInside:
    """The details of ``action``, an ``ncu_report.IAction``, which is one launch."""
    sectors, ideal = _by_line(action, _SECTORS), _by_line(action, _IDEAL)
    stalls: dict[FileLine, dict[str, float]] = {}
    for name in action.metric_names():
        reason = name.removeprefix(_STALL)
        if reason not in (name, _ISSUING) and not name.endswith(_NOT_ISSUED):
            for place, count in _by_line(action, name).items():
                if count:
                    stalls.setdefault(place, {})[reason] = count
    places = sorted({*sectors, *ideal, *stalls})
    duration_ns = _value(action, "gpu__time_duration.sum")
    return KernelInside(
        name=action.name(),
        device=str(_text(action, "device__attribute_display_name")),
        duration_ms=(duration_ns or 0.0) / 1e6,
        compute_percent=_value(action, "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        memory_percent=_value(action, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
        occupancy_percent=_value(action, "sm__warps_active.avg.pct_of_peak_sustained_active"),
        lines=tuple(
            KernelLine(*place, sectors.get(place, 0.0), ideal.get(place, 0.0), stalls.get(place, {}))
            for place in places
        ),
        advice=tuple(_advice(action)),
    )


def _module(folder: Path | None) -> Any:
    places = [str(folder)] if folder is not None else []
    sys.path[:0] = places
    try:
        return importlib.import_module("ncu_report")
    except ImportError as error:
        raise Problem(f"Nsight Compute's Python module cannot be loaded: {error}") from None
    finally:
        for place in places:
            sys.path.remove(place)


def _value(action: Any, name: str) -> float | None:
    metric = action.metric_by_name(name)
    return float(metric.as_double()) if metric is not None else None


def _text(action: Any, name: str) -> str:
    metric = action.metric_by_name(name)
    return metric.as_string() if metric is not None else ""


def _by_line(action: Any, name: str) -> dict[FileLine, float]:
    """A metric by instruction, summed over the instructions of each source line."""
    metric = action.metric_by_name(name)
    found: dict[FileLine, float] = {}
    if metric is None or not metric.has_correlation_ids():
        return found
    addresses = metric.correlation_ids()
    for index in range(metric.num_instances()):
        source = action.source_info(addresses.as_uint64(index))
        if source is not None and source.line():
            place = (source.file_name(), source.line())
            found[place] = found.get(place, 0.0) + metric.as_double(index)
    return found


def _advice(action: Any) -> list[tuple[str, str]]:
    """Advice of Nsight Compute's own rules, largest estimated speedup of the whole kernel first.

    Messages without advice are omitted. Older versions have no interface for this: () for those.
    """
    found: list[tuple[float, str, str]] = []
    for result in getattr(action, "rule_results_as_dicts", list)():
        said = result.get("rule_message") or {}
        estimate = result.get("speedup_estimation") or {}
        if not said.get("message") or said.get("type") in (_NONE, _OK):
            continue
        whole = estimate.get("type") == _WHOLE_KERNEL
        percent = float(estimate.get("speedup") or 0.0) if whole else 0.0
        gain = f" (estimated speedup: {percent:.0f} %)" if percent else ""
        found.append((percent, str(result.get("name", "")), _plain(str(said["message"])) + gain))
    found.sort(key=lambda one: -one[0])
    return list(dict.fromkeys((name, message) for _, name, message in found))


def _plain(message: str) -> str:
    """``message`` without links: ``@section:ID:text@`` and ``@url:text:address@`` become their text."""
    return _LINK.sub(lambda link: link["text"] or link["linked"], message)
