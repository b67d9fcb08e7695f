"""Asks an interpreter what it could measure; prints one line of JSON. Run as a file: ``python probe.py``."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from types import ModuleType
from typing import Any

del sys.path[0]  # this folder: its module names must not shadow others


def answer() -> dict[str, Any]:
    """What this interpreter has: Python, torch, devices, Triton. ``problem`` is one line, or None."""
    found = {
        "executable": sys.executable,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "monitoring": hasattr(sys, "monitoring"),
        "torch": None,
        "problem": None,
        "devices": [],
        "activities": [],
        "kernels_seen": None,
        "triton": None,
    }
    try:
        import torch
    except Exception as error:
        found["problem"] = ("%s: %s" % (type(error).__name__, error)).splitlines()[0]
        return found
    found["torch"] = str(torch.__version__)
    found["activities"] = sorted(
        str(activity).split(".")[-1] for activity in torch.profiler.supported_activities()
    )
    try:
        found["triton"] = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        pass  # only torch.compile and Triton kernels need it
    try:
        if torch.cuda.is_available():
            _devices(torch, found)
    except Exception as error:
        found["problem"] = ("%s: %s" % (type(error).__name__, error)).splitlines()[0]
    return found


def _devices(torch: ModuleType, facts: dict[str, Any]) -> None:
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        facts["devices"].append({"name": about.name, "memory_bytes": about.total_memory})
    # The driver may refuse profiling that torch supports, so try one kernel under the profiler.
    one = torch.ones(1024, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        one.add_(1)
        torch.cuda.synchronize()
    kinds = [str(event.device_type()) for event in profiler.profiler.kineto_results.events()]
    facts["kernels_seen"] = any(kind.endswith("CUDA") for kind in kinds)


if __name__ == "__main__":
    print(json.dumps(answer()))
