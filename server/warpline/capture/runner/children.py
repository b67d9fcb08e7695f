"""Processes that the script has started."""

from __future__ import annotations

import sys


def living() -> int:
    """How many it has started through multiprocessing that live."""
    processes = sys.modules.get("multiprocessing")
    return len(processes.active_children()) if processes is not None else 0


def processor_s() -> float:
    """Processor time of those that have ended, in seconds."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
