"""Whether memory is free for a second process like the running one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from warpline.capture import tree

#: The system's and a container's word (cgroup v2) on memory.
SYSTEM, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
#: It may yet grow, and others on the machine too.
SPARE = 1.25


def for_another(group: int | None) -> bool:
    """Whether what the processes of ``group`` hold is free once more. True where that is not known.

    On Linux, and of the host's memory: an allocation that does not fit on a device fails only there.
    """
    if group is None:
        return True
    free = min(_free_here(), _free_in_container())
    return held(group) * SPARE <= free


def held(group: int) -> int:
    """Bytes of memory that the processes of ``group`` have to themselves."""
    pages = 0
    for entry in tree.processes():
        with contextlib.suppress(OSError):
            if os.getpgid(int(entry.name)) == group:
                _, resident, shared, *_ = map(int, (entry / "statm").read_text().split())
                pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")


def _free_here() -> float:
    try:
        lines = SYSTEM.read_text().splitlines()
    except OSError:
        return float("inf")
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else float("inf")


def _free_in_container() -> float:
    try:
        most = int((CONTAINER / "memory.max").read_text())
        used = int((CONTAINER / "memory.current").read_text())
        stat = dict(line.split() for line in (CONTAINER / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no container, or "max"
        return float("inf")
    return most - used + int(stat.get("inactive_file", 0))
