"""Finds the main thread among the threads that py-spy lists."""

from __future__ import annotations

from collections.abc import Mapping


def main_thread(names: Mapping[str, str], pid: int) -> str | None:
    """The key of the main thread among ``names`` (system thread ID as text -> thread name); None if unknown.

    py-spy reads the names from the ``threading`` module. If the process never imported it, no thread has a
    name. Then the main thread is the one with the process's ID, as on Linux. In a container the IDs may
    differ; there a single thread is taken for the main one.
    """
    called = [key for key, name in names.items() if name == "MainThread"]
    if called:
        return called[0]
    return str(pid) if str(pid) in names else next(iter(names)) if len(names) == 1 else None
