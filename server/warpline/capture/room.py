"""Checks whether there is enough free memory for a second process like the running one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from warpline.capture import tree

#: Where the system and a container (cgroup v2) report memory.
SYSTEM, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
#: Safety factor: the second process may grow further, and so may others on the machine.
SPARE = 1.25


def for_another(group: int | None) -> bool:
    """Whether the host has as much free memory as the processes of ``group`` use; True if unknown.

    Linux only. Device memory is not checked: there, an allocation that does not fit fails by itself.
    """
    if group is None:
        return True
    free = min(_free_here(), _free_in_container())
    return held(group) * SPARE <= free


def held(group: int) -> int:
    """Bytes of private memory (resident minus shared) of the processes of ``group``."""
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
