"""The processes that a process started, and those that they started."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path


def descendants(process: int) -> set[int]:
    """All living descendants; orphaned ones cannot be found."""
    children = _parents()
    found: set[int] = set()
    todo = [process]
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def _parents() -> dict[int, list[int]]:
    """Parent -> its children."""
    children: dict[int, list[int]] = {}
    for child, parent in _from_proc() or _from_ps():
        children.setdefault(parent, []).append(child)
    return children


def _from_proc() -> list[tuple[int, int]]:
    pairs = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in parentheses may hold anything, parentheses too.
            fields = entry.read_text(errors="replace").rsplit(")", 1)[1].split()
            pairs.append((int(entry.parent.name), int(fields[1])))
    return pairs


def _from_ps() -> list[tuple[int, int]]:
    try:
        listed = subprocess.run(
            ["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [(int(pid), int(ppid)) for pid, ppid in (line.split() for line in listed.stdout.splitlines())]
