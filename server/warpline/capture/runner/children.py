"""Processes that the script has started."""

from __future__ import annotations

import sys


def living() -> int:
    """Number of living processes that it started through multiprocessing."""
    processes = sys.modules.get("multiprocessing")
    return len(processes.active_children()) if processes is not None else 0


def processor_s() -> float:
    """Processor time in seconds of child processes that have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
