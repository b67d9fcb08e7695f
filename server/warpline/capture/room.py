"""Checks whether there is enough free memory for a second process like the running one."""

from __future__ import annotations

import contextlib
import os
import sys

from warpline.capture import tree
from warpline.wire.memory import free_bytes

#: Safety factor: the second process may grow further, and so may others on the machine.
SPARE = 1.25


def for_another(group: int | None) -> bool:
    """Whether the host has as much free memory as the processes of ``group`` use; True if unknown.

    Linux only. Device memory is not checked: there, an allocation that does not fit fails by itself.
    """
    return group is None or for_more(held(group)) >= 1


def for_more(each: int) -> int:
    """How many more processes of ``each`` bytes fit into the host's free memory; a great many if unknown."""
    free = free_bytes()
    return sys.maxsize if free is None else int(free / max(1.0, each * SPARE))


def held(group: int) -> int:
    """Bytes of private memory (resident minus shared) of the processes of ``group``."""
    pages = 0
    for entry in tree.processes():
        with contextlib.suppress(OSError):
            if os.getpgid(int(entry.name)) == group:
                _, resident, shared, *_ = map(int, (entry / "statm").read_text().split())
                pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")
