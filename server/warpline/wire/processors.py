"""The processor cores that a process may use."""

from __future__ import annotations

import os
from pathlib import Path

#: What a container may use of its processors (cgroup v2): "MICROSECONDS PERIOD", or "max PERIOD".
QUOTA = "/sys/fs/cgroup/cpu.max"


def cores() -> int:
    """How many cores this process may use: by its affinity, and by its container's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        allowed, period = Path(QUOTA).read_text(encoding="ascii").split()
        return max(1, min(count, -(-int(allowed) // int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return count
