"""Checks whether there is enough free memory for a second process like the running one."""

from __future__ import annotations

import contextlib
import os

from warpline.capture import tree
from warpline.wire.memory import free_bytes

#: Safety factor: the second process may grow further, and so may others on the machine.
SPARE = 1.25


def for_another(group: int | None) -> bool:
    """Whether the host has as much free memory as the processes of ``group`` use; True if unknown.

    Linux only. Device memory is not checked: there, an allocation that does not fit fails by itself.
    """
    if group is None:
        return True
    free = free_bytes()
    return free is None or held(group) * SPARE <= free


def held(group: int) -> int:
    """Bytes of private memory (resident minus shared) of the processes of ``group``."""
    pages = 0
    for entry in tree.processes():
        with contextlib.suppress(OSError):
            if os.getpgid(int(entry.name)) == group:
                _, resident, shared, *_ = map(int, (entry / "statm").read_text().split())
                pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")
